package smoke

import (
	"strings"
	"testing"
	"unicode"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// What a program of the tree prints, and what it leaves, may be anything: a
// report stays short and printable.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("smoke: pass vector-add 4096 \nsmoke: end of 0 kernel\n"), "gfx1030")
	f.Add([]byte("\x1b]0;title\x07\r\nerror: \xff\xfe\u202e"), "gfx90a")
	f.Add([]byte("\x7fELF\x02\x01"+strings.Repeat("\x00", 58)+"amdgcn-amd-amdhsa--gfx1030"), "gfx1030")
	f.Fuzz(func(t *testing.T, out []byte, target string) {
		text := tail(string(out))
		if len(text) > 8*maxOutput || strings.Count(text, "\n") >= maxLines {
			t.Errorf("%d bytes, %d lines", len(text), strings.Count(text, "\n"))
		}
		for _, r := range text + errorLine(string(out)) + short(string(out)) {
			if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
				t.Errorf("%q is printed", r)
			}
		}
		l := lines(out)
		for _, word := range []string{"pass", "wrong", "step"} {
			_, _ = l.last(word), l.rest(word, "vector-add")
		}
		_ = at(l)
		if err := codeObject(out, target); err == nil && !strings.Contains(string(out), target) {
			t.Errorf("%q is taken for a code object for %q", out, target)
		}
	})
}

// What a process on a GPU printed may be anything too.
func FuzzGPUVerdict(f *testing.F) {
	f.Add([]byte("smoke: wrong vector-add\n"))
	f.Add([]byte("smoke: denied  0\nsmoke: step \n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		r := &run{report: &Report{}}
		v := r.judgeGPU(attempt{res: &cage.Result{Stdout: out}}, "vector-add", nil, false)
		if v.status == Passed && !strings.Contains(string(out), "smoke: pass vector-add") {
			t.Errorf("%q: %+v", out, v)
		}
	})
}
