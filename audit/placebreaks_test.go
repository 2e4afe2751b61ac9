package audit

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

var placeBreaks = []oneBreak{
	{name: "a library that a program needs", do: func(f *fixture) {
		f.remove(rocm + "lib/liba.so.1.0")
		f.remove(rocm + "lib/liba.so.1")
		f.remove(rocm + "lib/liba.so")
	}, want: "required needed " + rocm + "bin/tool | liba.so.1"},
	{name: "a library of the host of which a test has a copy", do: func(f *fixture) {
		f.elf(rocm+"share/x/libhost.so.1", elfSpec{soname: "libhost.so.1"})
	}},
	{name: "a library of the host that the tree has too", do: func(f *fixture) {
		f.elf(rocm+"share/x/libhost.so.1", elfSpec{soname: "libhost.so.1"})
		f.elf(rocm+"lib/x/libhost.so.1", elfSpec{soname: "libhost.so.1"})
		f.elf(rocm+"lib/sys/libb.so.1", elfSpec{soname: "libb.so.1"})
	}, want: "fatal foreign-library " + rocm + "bin/tool | libhost.so.1"},
	{name: "a library that another one filters for", do: func(f *fixture) {
		f.elf(rocm+"lib/liby.so.1", elfSpec{soname: "liby.so.1", filter: "libz-gone.so.1", auxiliary: "libx-gone.so.1"})
	}, want: "required needed " + rocm + "lib/liby.so.1 | libz-gone.so.1"},
	{name: "a link to a library that is not there", do: func(f *fixture) { f.link(rocm+"lib/libx.so", "libx.so.1") }, want: "required link " + rocm + "lib/libx.so | libx.so.1"},
	{name: "a link with an absolute name", do: func(f *fixture) { f.link(rocm+"share/x", f.path("opt/rocm/bin")) }, want: "required link " + rocm + "share/x | PREFIX/opt/rocm/bin"},
	{name: "a link out of the tree", do: func(f *fixture) { f.link(rocm+"share/x", "/etc/passwd") }, want: "fatal escape " + rocm + "share/x | /etc/passwd"},
	{name: "a link in a circle", do: func(f *fixture) { f.link(rocm+"bin/x", "x") }, want: "required link " + rocm + "bin/x | x"},
	{name: "the root's link to the device libraries", do: func(f *fixture) { f.remove("amdgcn") }, want: "required root-shape amdgcn"},
	{name: "a path in a .pc", do: func(f *fixture) { f.text(rocm+"lib/pkgconfig/y.pc", "prefix=/__w/x/stage\n", 0o644) }, want: "warning leaked-path " + rocm + "lib/pkgconfig/y.pc"},
	{name: "another ROCm in a .pc", do: func(f *fixture) {
		f.text(rocm+"lib/pkgconfig/y.pc", "# /opt/rocm\nDescription: of /opt/rocm\nprefix=/opt/rocm-10.1.0\n", 0o644)
	}, want: "warning leaked-path " + rocm + "lib/pkgconfig/y.pc"},
	{name: "its own place in a .pc", do: func(f *fixture) { f.text(rocm+"lib/pkgconfig/y.pc", "prefix=/opt/rocm\n", 0o644) },
		with: func(o *Options) { o.FinalPrefix = "/opt/rocm" }},
	{name: "another name in a .pc", do: func(f *fixture) { f.text(rocm+"lib/pkgconfig/y.pc", "a=/usr/opt/rocm\nb=/opt/rocmx\n", 0o644) }},
	{name: "another ROCm in a -config", do: func(f *fixture) { f.text(rocm+"bin/y-config", "prefix=/opt/rocm\n", 0o644) }, want: "warning leaked-path " + rocm + "bin/y-config"},
	{name: "a path in a .la", do: func(f *fixture) { f.text(rocm+"lib/y.la", "libdir='/therock/build'\n", 0o644) }, want: "warning leaked-path " + rocm + "lib/y.la"},
	{name: "a path in a .cmake", do: func(f *fixture) { f.text(rocm+"lib/cmake/y.cmake", "set(A /home/runner/x)\n", 0o644) }, want: "warning leaked-path " + rocm + "lib/cmake/y.cmake"},
	{name: "a path in a -config", do: func(f *fixture) { f.text(rocm+"bin/y-config", "echo -L/__w/x\n", 0o644) }, want: "warning leaked-path " + rocm + "bin/y-config"},
	{name: "a path in a .cfg", do: func(f *fixture) { f.text(rocm+"lib/llvm/bin/y.cfg", "-L/opt/python/lib\n", 0o644) }, want: "warning leaked-path " + rocm + "lib/llvm/bin/y.cfg"},
	{name: "a path in a script", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/bin/sh\n. /__w/x/env\n", 0o755) }, want: "warning leaked-path " + rocm + "libexec/y"},
	{name: "a path in a run path", do: func(f *fixture) {
		f.elf(victim, elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "$ORIGIN/sys:/__w/x/lib"})
	}, want: "required leaked-path " + victim + " | /__w/x/lib"},
	{name: "set-user-ID", do: func(f *fixture) { chmod(f, rocm+"libexec/helper", 0o755|os.ModeSetuid) }, want: "fatal mode " + rocm + "libexec/helper | set-id"},
	{name: "set-group-ID", do: func(f *fixture) { chmod(f, rocm+"libexec/helper", 0o755|os.ModeSetgid) }, want: "fatal mode " + rocm + "libexec/helper | set-id"},
	{name: "a file for all to write", do: func(f *fixture) { chmod(f, rocm+"libexec/helper", 0o757) }, want: "fatal mode " + rocm + "libexec/helper | world-writable"},
	{name: "a directory for all to write", do: func(f *fixture) { chmod(f, rocm+"libexec", 0o757) }, want: "fatal mode " + rocm + "libexec | world-writable"},
	{name: "a pipe", do: func(f *fixture) {
		if err := syscall.Mkfifo(f.path(rocm+"share/pipe"), 0o644); err != nil {
			f.Fatal(err)
		}
	}, want: "fatal mode " + rocm + "share/pipe | special"},
	{name: "a wrapper that was changed", do: func(f *fixture) { f.patch("bin/tool", func(b []byte) []byte { return append(b, "# x\n"...) }) }, want: "required wrapper bin/tool | tool"},
	{name: "an empty wrapper", do: func(f *fixture) { f.text("bin/tool", "", 0o755) }, want: "required wrapper bin/tool | tool"},
	{name: "a wrapper that cannot be executed", do: func(f *fixture) { chmod(f, "bin/tool", 0o644) }, want: "required wrapper bin/tool | tool"},
	{name: "a wrapper that is gone", do: func(f *fixture) { f.remove("bin/tool") }, want: "required wrapper bin/tool | tool"},
	{name: "a wrapper's program", do: func(f *fixture) { f.remove(rocm + "bin/tool") }, want: "required wrapper bin/tool | tool"},
	{name: "a program beside the wrappers", do: func(f *fixture) {
		f.text("bin/mine", "#!/bin/sh\n", 0o755)
		f.link(rocm+"bin/mine", "tool")
	}, want: "warning wrapper bin/mine | mine"},
	{name: "a license", do: func(f *fixture) {
		f.text(rocm+"share/doc/more/LICENSE", "x", 0o644)
		f.remove(rocm + "share/doc/hip")
	}, want: "warning license share/licenses/rocm-nightly/hip-LICENSE.md | ../../../opt/rocm/share/doc/hip/LICENSE.md"},
	{name: "the gathered licenses", do: func(f *fixture) { f.remove("share/licenses") }, want: "warning license share/licenses/rocm-nightly"},
	{name: "the manifest", do: func(f *fixture) { f.remove("manifest.json") }, want: "warning manifest manifest.json"},
	{name: "a manifest that is none", do: func(f *fixture) { f.text("manifest.json", "{\x00", 0o644) }, want: "warning manifest manifest.json"},
	{name: "the list of files", do: func(f *fixture) { f.remove("files.jsonl") }, want: "warning manifest files.jsonl"},
	{name: "a list that is cut", do: func(f *fixture) { f.patch("files.jsonl", func(b []byte) []byte { return b[:len(b)-9] }) }, want: "warning manifest files.jsonl"},
	{name: "a list that is none", do: func(f *fixture) { f.text("files.jsonl", "garbage\n", 0o644) }, want: "warning manifest files.jsonl"},
	{name: "an empty list", do: func(f *fixture) { f.text("files.jsonl", "", 0o644) }, want: "warning manifest files.jsonl"},
	{name: "a list that says another mode", do: func(f *fixture) {
		f.patch("files.jsonl", func(b []byte) []byte {
			return fmt.Appendf(b, `{"path":"opt/rocm/libexec/helper","kind":"file","mode":"0755"}`+"\n")
		})
		chmod(f, rocm+"libexec/helper", 0o755|os.ModeSetuid)
	}, want: "fatal mode " + rocm + "libexec/helper | set-id"},
	{name: "another release's manifest", do: func(f *fixture) {
		f.text(rocm+"share/therock/therock_manifest.json", `{"rocm_package_version":"10.2.0a20260929"}`, 0o644)
	}, want: "warning version " + rocm + "share/therock/therock_manifest.json | 10.2.0a20260929"},
	{name: "another release's .info", do: func(f *fixture) { f.text(rocm+".info/version", "10.1.0-55\n", 0o644) }, want: "warning version " + rocm + ".info/version | 10.1.0"},
	{name: ".info", do: func(f *fixture) { f.remove(rocm + ".info"); f.remove(".info") }, want: "warning root-shape " + rocm + ".info"},
	{name: "an interpreter of the host", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/usr/bin/no-such-perl\n", 0o755) },
		want: "warning interpreter " + rocm + "libexec/y | /usr/bin/no-such-perl"},
	{name: "an interpreter of env", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/usr/bin/env -S no-such-python3.99 -u\n", 0o755) },
		want: "warning interpreter " + rocm + "libexec/y | no-such-python3.99"},
	{name: "an interpreter of a build machine", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/opt/py/bin/python\n", 0o755) }, with: inTree,
		want: "required interpreter " + rocm + "libexec/y | /opt/py/bin/python"},
	{name: "an interpreter without a directory", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!@PYTHON_EXECUTABLE@ -u\n", 0o755) },
		want: "warning interpreter " + rocm + "libexec/y | @PYTHON_EXECUTABLE@"},
	{name: "a first line of DOS", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/bin/sh\r\n", 0o755) }, want: "warning interpreter " + rocm + `libexec/y | /bin/sh`},
	{name: "a first line that env does not split", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/usr/bin/env sh -e\n", 0o755) },
		want: "warning interpreter " + rocm + "libexec/y | /usr/bin/env sh -e"},
	{name: "a first line that is too long", do: func(f *fixture) { f.text(rocm+"libexec/y", "#!/bin/sh "+strings.Repeat("x", 256)+"\n", 0o755) },
		want: "warning interpreter " + rocm + "libexec/y | /bin/sh " + strings.Repeat("x", 256)},
	{name: "a program's loader", do: func(f *fixture) {
		f.elf(rocm+"bin/tool", elfSpec{program: true, interp: "/lib64/ld-no-such.so.9", needed: []string{"liba.so.1"}, runpath: "$ORIGIN/../lib"})
	}, want: "required interpreter " + rocm + "bin/tool | /lib64/ld-no-such.so.9"},
}
