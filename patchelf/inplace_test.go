package patchelf

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// TestNoEditIsLost: an edit that was worked out on what another one has
// replaced meanwhile is not made.
func TestNoEditIsLost(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	second := Edit{RunPath: ptr("/second")}
	meanwhile := map[string]func() error{
		"in place": func() error { _, err := EditPath(path, second); return err },
		"a copy":   func() error { _, err := EditCopy(path, path, second, CopyOptions{}); return err },
		"removed":  func() error { return os.Remove(path) },
	}
	for name, other := range meanwhile {
		mustEdit(t, path, Edit{RunPath: ptr("/first")})
		want := func(f *File) (Edit, error) {
			longer := *f.RunPath + ":" + longPath
			return Edit{RunPath: &longer}, other()
		}
		var refused *RefusedError
		if _, err := EditPathFunc(path, want, nil); !errors.As(err, &refused) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "removed" {
			path = copyOf(t, variantOf(t, "bfd-pie-4").make(t))
			continue
		}
		checkPath(t, path, "/second", RunPath)
		mustEdit(t, path, Edit{RunPath: ptr("/first")})
		_, err := EditCopyFunc(path, path, want, CopyOptions{})
		switch name {
		case "in place": // the copy keeps it away
			if !errors.Is(err, errLocked) {
				t.Errorf("copy, %s: %v", name, err)
			}
		default:
			if !errors.As(err, &refused) {
				t.Errorf("copy, %s: %v", name, err)
			}
			checkPath(t, path, "/second", RunPath)
		}
	}
}

// TestAskedBeforeTheFirstWrite: who is asked may say no, and is not asked
// where there is nothing to write.
func TestAskedBeforeTheFirstWrite(t *testing.T) {
	path := copyOf(t, variantOf(t, "bfd-pie-4").make(t))
	first := read(t, path)
	no := errors.New("no")
	asked := 0
	ask := func(f *os.File, p *Plan) error {
		asked++
		if used, err := InUse(f); used || err != nil {
			t.Errorf("in use: %v %v", used, err)
		}
		return no
	}
	if _, err := EditPathFunc(path, always(Edit{RunPath: ptr("/x")}), ask); !errors.Is(err, no) || !bytes.Equal(read(t, path), first) {
		t.Errorf("%v", err)
	}
	if _, err := EditPathFunc(path, always(Edit{RunPath: ptr("/o/p")}), ask); err != nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := EditPathFunc(path, func(*File) (Edit, error) { return Edit{}, no }, nil); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
}

// TestKilledEditCanBeMadeAgain: whichever of the writes was the last, the file
// loads, and the next edit is made.
func TestKilledEditCanBeMadeAgain(t *testing.T) {
	for _, name := range []string{"bfd-pie-4", "bfd-exec-0", "bfd-lib-36"} {
		v := variantOf(t, name)
		path := copyOf(t, v.make(t))
		for _, next := range []string{longPath, "/short", longPath + ":/and:/more", longPath + ":/and:/more:/than:/before", "/x"} {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			p, _, err := planFile(f, Edit{RunPath: ptr(next + ":" + shop.deps(t))})
			if err != nil {
				t.Fatal(err)
			}
			for n := range p.writes {
				half := *p
				half.writes = p.writes[:n]
				if err := half.Apply(f); err != nil {
					t.Fatal(err)
				}
				broken := put(t, v.name, read(t, path))
				if _, err := EditPath(broken, Edit{RunPath: ptr("/again/" + next + ":" + shop.deps(t))}); err != nil {
					t.Errorf("%s, %s, after %d of %d writes (%s): %v", name, next, n, len(p.writes), p, err)
				} else if code, out := runs(t, broken, v.lib); code != 46 {
					t.Errorf("%s, %s, after %d of %d writes (%s): exit %d: %s", name, next, n, len(p.writes), p, code, out)
				}
				if err := p.undo(f); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Apply(f); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
	}
}
