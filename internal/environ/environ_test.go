package environ

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever there is before, and however it is entered, leaving restores it.
func TestLeaveUndoesEnter(t *testing.T) {
	e := sample(t, "a")
	other := e.At("/other")
	values := []string{"", ":", "::", "/a", "/a:", ":/a", "/a:/b:/a", "/a::/b"}
	for _, s := range slices.Concat(e.Lists, other.Lists) {
		values = append(values, s.Dir, s.Dir+":/a:"+s.Dir, ":"+s.Dir, s.Dir+":")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var env []string
		for _, name := range []string{"PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "ROCM_PATH", "ODD", "HOME"} {
			if rnd.IntN(3) > 0 {
				env = append(env, name+"="+values[rnd.IntN(len(values))])
			}
		}
		entered := e.Enter(env)
		if twice := e.Enter(entered); !slices.Equal(twice, entered) {
			t.Fatalf("%q: entered twice: %q, not %q", env, twice, entered)
		}
		if left := Leave(entered); !slices.Equal(left, env) {
			t.Fatalf("left: %q, not %q", left, env)
		}
		if there, want := other.Enter(entered), other.Enter(env); !slices.Equal(sorted(there), sorted(want)) {
			t.Fatalf("%q: entered another: %q, not %q", env, there, want)
		}
	}
}

func TestEnter(t *testing.T) {
	e := (&Environment{
		Schema: Schema, Prefix: "/p", Set: []Variable{{"ROCM_PATH", "/p/opt/rocm"}, {"X", "1"}},
		Lists: []Search{{"PATH", "/p/bin", true}, {"L", "/p/lib", false}},
	}).At("/q")
	got := e.Enter([]string{"X=", "PATH=/bin:/q/bin", "L=/l"})
	want := []string{
		"X=", "PATH=/q/bin:/bin:/q/bin", "L=/l:/q/lib", "ROCM_PATH=/q/opt/rocm",
		"ROCM_NIGHTLY_UNDO=set ROCM_PATH /q/opt/rocm\tfirst PATH /q/bin\tlast L /q/lib", "ROCM_NIGHTLY_ENV=/q",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// What somebody else has written there does nothing but what a record can do.
	odd := []string{"A=1", "ROCM_NIGHTLY_UNDO=set\tset A\t set A 1\tset A;x 1\tlast B c\t\tjump A 1\tset A 2", "ROCM_NIGHTLY_ENV=/x"}
	if left := Leave(odd); !slices.Equal(left, []string{"A=1"}) {
		t.Errorf("%q", left)
	}
}

func TestParse(t *testing.T) {
	e := sample(t, "a")
	back, err := Parse([]byte(e.JSON()))
	if err != nil || back.JSON() != e.JSON() {
		t.Errorf("%v, %v", back, err)
	}
	read, err := Read(e.Prefix)
	if err != nil || read.JSON() != e.JSON() {
		t.Errorf("%v, %v", read, err)
	}
	if _, err := Read(filepath.Join(e.Prefix, "etc")); err == nil || !strings.Contains(err.Error(), "--prefix") {
		t.Errorf("no prefix: %v", err)
	}
	for text, want := range map[string]string{
		`{`:                                "unexpected end",
		`{"schema": 2}`:                    "schema 2",
		`{"schema": 1, "prefix": ""}`:      "absolute",
		`{"schema": 1, "prefix": "/a\nb"}`: "control",
		`{"schema": 1, "prefix": "/a", "set": [{"name": "A;B", "value": "1"}]}`:   "no name",
		`{"schema": 1, "prefix": "/a", "set": [{"name": "A", "value": "1\t2"}]}`:  "control",
		`{"schema": 1, "prefix": "/a", "set": [{"name": "A", "value": ""}]}`:      "cannot be set",
		`{"schema": 1, "prefix": "/a", "lists": [{"name": "A", "dir": "/b:/c"}]}`: "cannot get",
		`{"schema": 1, "prefix": "/a", "lists": [{"name": "A", "dir": ""}]}`:      "cannot get",
		`{"schema": 1, "prefix": "/a", "lists": [{"name": "1A", "dir": "/b"}]}`:   "no name",
		`{"schema": 1, "prefix": "/a", "about": "\u001b[2J"}`:                     "control",
		`{"schema": 1, "prefix": "/a", "set": ["` + strings.Repeat("x", maxFile):  "more than",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

func FuzzLeave(f *testing.F) {
	f.Add("set A 1\tlast-new B /x\tfirst PATH /p", "/x", "1")
	f.Fuzz(func(t *testing.T, undo, b, a string) {
		left := Leave([]string{"A=" + a, "B=" + b, "PATH=/p:/bin", UndoName + "=" + undo})
		if again := Leave(left); !slices.Equal(left, again) {
			t.Errorf("%q, %q", left, again)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "prefix": "/p", "set": [{"name": "A", "value": "/p/b"}], "lists": [{"name": "PATH", "dir": "/p/bin", "first": true}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse([]byte(e.JSON()))
		if err != nil || again.JSON() != e.JSON() {
			t.Fatalf("%v, %v", again, err)
		}
		if back := e.At("/elsewhere").At(e.Prefix); len(back.Set) != len(e.Set) || len(back.Lists) != len(e.Lists) {
			t.Errorf("%v", back)
		}
	})
}

func TestConfigurable(t *testing.T) {
	for _, name := range []string{"HSA_OVERRIDE_GFX_VERSION", "HSA_ENABLE_SDMA", "HIP_VISIBLE_DEVICES", "HIP_PLATFORM", "AMD_COMGR_CACHE_DIR", "MIOPEN_USER_DB_PATH"} {
		if err := Configurable(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "A B", "1A", "A=B", "Ä", "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "ROCM_PATH", "ROCM_NIGHTLY_UNDO", "BASH_ENV", "IFS", "PYTHONPATH", strings.Repeat("A", 200)} {
		if Configurable(name) == nil {
			t.Errorf("%q may be set", name)
		}
	}
}

func TestQuotes(t *testing.T) {
	const s = "a'b\"c\\d!e\x01"
	for name, got := range map[string][2]string{
		"sh":   {QuoteSh(s), `'a'\''b"c\d!e` + "\x01'"},
		"fish": {quoteFish(s), `'a\'b"c\\d!e` + "\x01'"},
		"csh":  {quoteCsh(s), `'a'\''b"c\d\!e` + "\x01'"},
		"lua":  {quoteLua(s), `"a'b\"c\\d!e\001"`},
		"nu":   {quoteNu(s), `"a'b\"c\\d!e\u{1}"`},
		"tcl":  {quoteTcl("a$[b]{\"\\"), `"a\$\[b\]\{\"\\"`},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", name, got[0], got[1])
		}
	}
}

func ExampleEnvironment_Enter() {
	e := &Environment{
		Schema: Schema, Prefix: "/opt/x", Set: []Variable{{"ROCM_PATH", "/opt/x/opt/rocm"}},
		Lists: []Search{{"PATH", "/opt/x/bin", true}},
	}
	in := e.Enter([]string{"PATH=/usr/bin"})
	fmt.Println(in[0], in[1])
	fmt.Println(Leave(in))
	// Output:
	// PATH=/opt/x/bin:/usr/bin ROCM_PATH=/opt/x/opt/rocm
	// [PATH=/usr/bin]
}
