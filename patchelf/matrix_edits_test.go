package patchelf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// usualInterp is the loader of this machine's programs.
const usualInterp = "/lib64/ld-linux-x86-64.so.2"

// task is one edit of the matrix, and what must be so after it.
type task struct {
	name     string
	edit     Edit
	fails    bool     // the loader does not find libdep.so after it
	programs bool     // programs only
	lists    []string // what ld.so --list says, as parts of it
	lacks    []string // and what it does not
}

// tasks are the edits of the matrix, made one after the other.
func tasks(tb testing.TB) []task {
	deps := dependencies(tb)
	on, off := true, false
	host := deps + ":/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu"
	long, short := interpreters(tb)
	return []task{
		{name: "long run path", edit: Edit{RunPath: ptr(longPath + ":" + deps), Tag: RunPath}},
		{name: "tag", edit: Edit{Tag: RPath}},
		{name: "short run path", edit: Edit{RunPath: ptr(deps)}},
		{name: "add needed", edit: Edit{AddNeeded: []string{"libextra.so", "libdep.so"}}, lists: []string{"libextra.so", "libdep.so"}},
		{name: "replace needed", edit: Edit{ReplaceNeeded: map[string]string{"libdep.so": "libother.so"}}, lists: []string{"libother.so"}, lacks: []string{"libdep.so"}},
		{name: "long name needed", edit: Edit{ReplaceNeeded: map[string]string{"libother.so": deps + "/libdep.so"}}, lists: []string{"libdep.so"}, lacks: []string{"libother.so"}},
		{name: "remove needed", edit: Edit{RemoveNeeded: []string{"libextra.so"}}, lacks: []string{"libextra.so"}},
		{name: "soname", edit: Edit{Soname: ptr("libanother-and-longer-name.so.23")}},
		{name: "no default libraries", edit: Edit{RunPath: ptr(host), NoDefaultLib: true}},
		{name: "debug tag", edit: Edit{DebugTag: true}, programs: true},
		{name: "long interpreter", edit: Edit{Interp: long}, programs: true},
		{name: "short interpreter", edit: Edit{Interp: short}, programs: true},
		{name: "executable stack", edit: Edit{ExecStack: &on}},
		{name: "no executable stack", edit: Edit{ExecStack: &off}},
		{name: "remove run path", edit: Edit{RunPath: ptr(""), ReplaceNeeded: map[string]string{deps + "/libdep.so": "libdep.so"}}, fails: true},
		{name: "run path where none is", edit: Edit{RunPath: ptr(host), Tag: RunPath}},
		several(host, long, "libdep.so", "libother.so"),
	}
}

// several asks for everything at once.
func several(path, interp, from, to string) task {
	off := false
	return task{name: "several", edit: Edit{RunPath: ptr(longPath + ":" + path), Tag: RPath, Interp: interp, Soname: ptr("libseveral.so"),
		AddNeeded: []string{"libextra.so"}, ReplaceNeeded: map[string]string{from: to}, NoDefaultLib: true, ExecStack: &off},
		lists: []string{"libextra.so", to}, lacks: []string{from}}
}

// fit leaves out of an edit what a library has not.
func (k task) fit(lib bool) Edit {
	e := k.edit
	if lib {
		e.Interp = ""
	}
	return e
}

// interpreters are two other names of the usual one.
func interpreters(tb testing.TB) (long, short string) {
	tb.Helper()
	if _, err := os.Stat(usualInterp); err != nil {
		tb.Skip("no " + usualInterp + " (Debian: libc6 on amd64)")
	}
	long = filepath.Join(shop.dir, strings.Repeat("interpreter/", 9), "ld.so")
	short = filepath.Join(shop.dir, "l")
	shop.mu.Lock()
	defer shop.mu.Unlock()
	for _, link := range []string{long, short} {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			tb.Fatal(err)
		}
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.Symlink(usualInterp, link); err != nil {
			tb.Fatal(err)
		}
	}
	return long, short
}
