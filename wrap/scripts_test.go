package wrap

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestInterpreterFHS(t *testing.T) {
	long := "/__w/" + strings.Repeat("x", 300) + "/bin/python3"
	tests := []struct{ name, in, want, reason string }{
		{"env", "#!/usr/bin/env python3\nx", "", ""},
		{"env versioned", "#!/usr/bin/env python3.11\nx", "", ""},
		{"env split", "#!/usr/bin/env -S python3 -E\nx", "", ""},
		{"sh", "#!/bin/sh\nx", "", ""},
		{"bash with argument", "#!/bin/bash -e\nx", "", ""},
		{"perl", "#!/usr/bin/perl -w\nx", "", ""},
		{"local", "#!/usr/local/bin/node\nx", "", ""},
		{"sbin", "#!/usr/sbin/nologin\n", "", ""},
		{"host path through dots", "#!/usr/../opt/python/bin/python3\n", "#!/usr/bin/env python3\n", ""},
		{"manylinux", "#!/opt/python/cp312-cp312/bin/python3.12\nimport x\n", "#!/usr/bin/env python3\nimport x\n", ""},
		{"plain python", "#!/opt/python/bin/python\n", "#!/usr/bin/env python3\n", ""},
		{"python 2 is no python 3", "#!/opt/python/bin/python2.7\n", "#!/usr/bin/env python2.7\n", ""},
		{"github", "#!/__w/rockrel/build/venv/bin/python3\n", "#!/usr/bin/env python3\n", ""},
		{"therock", "#!/therock/output/bin/bash\n", "#!/usr/bin/env bash\n", ""},
		{"argument", "#!/opt/python/bin/python3 -E\n", "#!/usr/bin/env -S python3 -E\n", ""},
		{"special argument", "#!/opt/perl/bin/perl -s$x \"\\\n", "#!/usr/bin/env -S perl -s\\$x \\\"\\\\\n", ""},
		{"env of a builder", "#!/__w/bin/env python3\n", "#!/usr/bin/env python3\n", ""},
		{"env with a builder's command", "#!/usr/bin/env /opt/python/bin/python3.12\n", "#!/usr/bin/env python3\n", ""},
		{"env split with a builder's command", "#!/usr/bin/env -S A=b /opt/p/bin/python3.12 -E -s\n", "#!/usr/bin/env -S A=b python3 -E -s\n", ""},
		{"env without the split", "#!/usr/bin/env python3 -E\nx", "", "without -S"},
		{"env of a builder without the split", "#!/usr/bin/env A=b /opt/p/bin/python3\nx", "", "without -S"},
		{"env with an assignment", "#!/usr/bin/env -S A=b python3\n", "", ""},
		{"env quoted command of the host", "#!/usr/bin/env -S '/usr/bin/python3' -E\n", "", ""},
		{"env quoted command of a builder", "#!/usr/bin/env -S \"/opt/python/bin/python3\" -E\n", "", "not known"},
		{"env verbose with a builder's command", "#!/usr/bin/env -vS /opt/python/bin/python3 -E\n", "", "not known"},
		{"env option with a builder's value", "#!/usr/bin/env --argv0=/opt/p/x python3\n", "", "not known"},
		{"versioned through env", "#!/usr/bin/env -S /opt/python/cp312-cp312/bin/python3.12 -sE\n", "#!/usr/bin/env -S python3 -sE\n", ""},
		{"python arguments", "#!/opt/python/cp312-cp312/bin/python3.12 -sE\n", "#!/usr/bin/env -S python3 -sE\n", ""},
		{"as long as the kernel reads", "#!/opt/p/bin/perl " + strings.Repeat("x", 255-len("#!/usr/bin/env -S perl ")) + "\n", "#!/usr/bin/env -S perl " + strings.Repeat("x", 255-len("#!/usr/bin/env -S perl ")) + "\n", ""},
		{"one byte more", "#!/opt/p/bin/perl " + strings.Repeat("x", 256-len("#!/usr/bin/env -S perl ")) + "\n", "", "the kernel reads 255"},
		{"space after the mark", "#! \t/opt/python/bin/python3\nx", "#! \t/usr/bin/env python3\nx", ""},
		{"trailing blanks", "#!/opt/python/bin/python3 \t \nx", "#!/usr/bin/env python3 \t \nx", ""},
		{"no newline", "#!/opt/python/bin/python3", "#!/usr/bin/env python3", ""},
		{"binary after line 1", "#!/opt/python/bin/python3\nPK\x03\x04\x00\xff\n", "#!/usr/bin/env python3\nPK\x03\x04\x00\xff\n", ""},
		{"carriage return", "#!/opt/python/bin/python3\r\nx\r\n", "#!/usr/bin/env python3\r\nx\r\n", "carriage return"},
		{"long builder path", "#!" + long + "\nx", "#!/usr/bin/env python3\nx", ""},
		{"too long after", "#!/opt/p/bin/perl " + strings.Repeat("-w ", 90) + "\n", "", "the kernel reads 255"},
		{"template", "#!@PYTHON_EXECUTABLE@\nx", "", "template"},
		{"template through env", "#!/usr/bin/env @PYTHON@\nx", "", "template"},
		{"odd name", "#!/opt/python/bin/-x\n", "", "no usable name"},
		{"directory", "#!/opt/python/\n", "#!/usr/bin/env python3\n", ""},
		{"rust", "#![no_std]\n", "", ""},
		{"wheel", "#!python\n", "", ""},
		{"NUL", "#!/opt/\x00\n", "", ""},
		{"no end", "#!/opt/" + strings.Repeat("x", 5000), "", "no end"},
		{"empty", "#!", "", ""},
		{"mark alone", "#!\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, NewScripts(ScriptOptions{}), tt.in, tt.want, tt.reason)
		})
	}
}

func TestInterpreterNix(t *testing.T) {
	has := map[string]bool{
		"/n/py/bin/python3": true, "/n/sh/bin/bash": true, "/n/sh/bin/sh": true,
		"/n/core/bin/env": true, "/n/perl/bin/perl": true, "/n/py/bin/python3.11": true,
	}
	o := ScriptOptions{
		Profile:         Nix,
		InterpreterPath: []string{"relative", "/with space/bin", "/n/py/bin", "/n/sh/bin", "/n/core/bin", "/n/perl/bin"},
		Lookup:          func(abs string) bool { return has[abs] || strings.HasPrefix(abs, "/with") },
	}
	tests := []struct{ name, in, want, reason string }{
		{"env", "#!/usr/bin/env python3\nx", "#!/n/py/bin/python3\nx", ""},
		{"env one argument", "#!/usr/bin/env -S python3 -E\nx", "#!/n/py/bin/python3 -E\nx", ""},
		{"glued split", "#!/usr/bin/env -Spython3 -E\nx", "#!/n/py/bin/python3 -E\nx", ""},
		{"env two arguments", "#!/usr/bin/env -S python3 -E -s\nx", "#!/n/core/bin/env -S /n/py/bin/python3 -E -s\nx", ""},
		{"env quoted argument", "#!/usr/bin/env -S bash -c'x'\n", "#!/n/core/bin/env -S /n/sh/bin/bash -c'x'\n", ""},
		{"clean environment", "#!/usr/bin/env -i bash\n", "#!/n/core/bin/env -i /n/sh/bin/bash\n", ""},
		{"assignment and unset", "#!/usr/bin/env -S -u X A=b perl -w\n", "#!/n/core/bin/env -S -u X A=b /n/perl/bin/perl -w\n", ""},
		{"absolute", "#!/bin/bash -e\nx", "#!/n/sh/bin/bash -e\nx", ""},
		{"sh", "#!/bin/sh\n", "#!/n/sh/bin/sh\n", ""},
		{"exact version", "#!/usr/bin/python3.11\n", "#!/n/py/bin/python3.11\n", ""},
		{"other version", "#!/opt/python/bin/python3.12\n", "#!/n/py/bin/python3\n", ""},
		{"plain python", "#!/usr/bin/env python\n", "#!/n/py/bin/python3\n", ""},
		{"missing", "#!/usr/bin/env ruby\n", "", "ruby is not in the interpreter path"},
		{"missing absolute", "#!/usr/bin/tclsh\n", "", "not in the interpreter path"},
		{"unknown option", "#!/usr/bin/env --debug bash\n", "", "form not known"},
		{"template", "#!@SH@\n", "", "template"},
		{"nothing to run", "#!/usr/bin/env\n", "", "form not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, NewScripts(o), tt.in, tt.want, tt.reason)
		})
	}
}

// checkEdit edits a script; want "" means unchanged, reason is part of what is
// reported.
func checkEdit(t *testing.T, s *Scripts, in, want, reason string) {
	t.Helper()
	if want == "" {
		want = in
	}
	data := []byte(in)
	out, rules, err := s.Edit("bin/x", 0o755, data)
	if err != nil || string(out) != want {
		t.Fatalf("got  %q, %v\nwant %q", out, err, want)
	}
	if string(data) != in {
		t.Error("the input was changed")
	}
	if changed := want != in; changed != (len(rules) == 1) {
		t.Errorf("rules %q", rules)
	}
	un := s.Unresolved()
	if reason == "" && len(un) > 0 || reason != "" && (len(un) != 1 || !strings.Contains(un[0].Reason, reason)) {
		t.Errorf("reported %+v, want %q", un, reason)
	}
	again, rules, _ := s.Edit("bin/x", 0o755, out)
	if !bytes.Equal(again, out) || len(rules) > 0 {
		t.Errorf("not idempotent: %q %q", again, rules)
	}
}

func TestWants(t *testing.T) {
	s := NewScripts(ScriptOptions{})
	for path, want := range map[string]bool{
		"bin/tool": false, "lib/pkgconfig/x.pc": true, "lib/cmake/hip/hip-config.cmake": true,
		"lib/llvm/bin/rocm.cfg": true, "share/x.cfg": false, "bin/foo-config": true, "lib/x.la": true, "lib/x.lay": false, "a/b.py": true, "bin/x.pm": true,
	} {
		if got := s.Wants(path, []byte("prefix=")); got != want {
			t.Errorf("Wants(%s) = %v", path, got)
		}
	}
	if !s.Wants("bin/tool", []byte("#!/bin/sh")) || s.Wants("x.pc", []byte("a\x00b")) {
		t.Error("content does not count")
	}
}

func FuzzEdit(f *testing.F) {
	for _, in := range []string{
		"#!/opt/python/cp312-cp312/bin/python3.12\nx", "#! /__w/a/env -S -i A=b /opt/x/bash -e\r\n\x00",
		"#!/usr/bin/env -Spython3 -E -s", "#!@P@\n", "#!/x/y  \t", "#!/opt/p/bin/perl -s$x \"\\\n",
		"prefix=/__w/a/stage/lib\nlibdir=/__w/a/stage/lib/lib\n", "#!/bin/sh\nprefix=\"/opt/rocm\"\nx=\"/opt/rocm/lib\"\n",
		"#!/x/env env x\n", "#!sh\nprefix=/opt/rocm\n0=",
		"dependency_libs=' -L/__w/b/stage/lib /opt/rocm/lib/libq.la -R/__w/x -lx'", "#!/bin/sh\n: ${ROCM_PATH:=/opt/rocm}\nA=\"${HIP_PATH-/opt/rocm/lib}\"",
		"#!/usr/bin/env python3\nos.getenv('ROCM_PATH', '/opt/rocm/lib')", "#!/usr/bin/perl\n$x = $ENV{ROCM_PATH} || \"/opt/rocm\";\n=pod\n",
		"set(X /opt/rocm)\n IMPORTED_LOCATION \"/opt/rocm/lib;/opt/rocm\"\n", "# rocm-nightly, added:\n-L/opt/rocm\n# rocm-nightly: end\n",
		tramp("/opt/python/bin/python3"), "set(X \"/__w/b/stage/lib\")\nfunction(f)\n", "--rocm-path=/opt/rocm-7.1/\n",
	} {
		f.Add(in, true)
		f.Add(in, false)
	}
	paths := []string{"bin/x", "lib/pkgconfig/x.pc", "lib/cmake/x.cmake", "lib/llvm/bin/x.cfg", "bin/x-config", "lib/x.la", "a/b/x.py", "bin/x.pm"}
	f.Fuzz(func(t *testing.T, in string, nix bool) {
		o := ScriptOptions{InterpreterPath: []string{"/n"}, Lookup: func(p string) bool { return !strings.Contains(p, "y") }}
		if nix {
			o.Profile = Nix
		}
		for _, p := range paths {
			s := NewScripts(o)
			out, rules, err := s.Edit(p, 0o755, []byte(in))
			if err != nil {
				t.Fatal(err)
			}
			if (len(rules) > 0) != (string(out) != in) {
				t.Fatalf("%q to %q by %q", in, out, rules)
			}
			again, more, err := s.Edit(p, 0o755, out)
			if err != nil || !bytes.Equal(again, out) || len(more) > 0 {
				t.Fatalf("%s: not idempotent:\n%q\n%q\n%q", p, in, out, again)
			}
			if p != "bin/x" || slices.ContainsFunc(rules, func(r string) bool { return r != RuleInterpreter }) {
				continue
			}
			_, before, _ := strings.Cut(in, "\n")
			_, after, _ := strings.Cut(string(out), "\n")
			if before != after && !trampoline.MatchString("\n"+before) {
				t.Fatalf("the rest changed: %q to %q", in, out)
			}
			if line, _ := firstLine(out); len(rules) > 0 && len(strings.TrimRight(line, " \t\r")) > maxShebang {
				t.Fatalf("too long: %q", line)
			}
		}
	})
}
