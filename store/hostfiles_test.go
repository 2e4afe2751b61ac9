package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withEtc gives what is active in sl the etc/ of a prefix, but for what is named.
func withEtc(t testing.TB, sl *Slot, without ...string) {
	t.Helper()
	for _, name := range []string{"profile.d/rocm-nightly.sh", "env.fish", "ld.so.conf.d/rocm-nightly.conf", "OpenCL/vendors/rocm-nightly.icd", "modulefiles/rocm-nightly/1"} {
		if slices.Contains(without, name) {
			continue
		}
		path := filepath.Join(sl.CurrentPath(), "etc", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// contents lists everything below dir.
func contents(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && path != dir {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestHostFilesComeAndGo(t *testing.T) {
	s, sl, path := linked(t)
	withEtc(t, sl)
	etc := filepath.Join(filepath.Dir(path), "etc")
	places := HostPlaces{Etc: etc}
	if err := errors.Join(os.MkdirAll(etc+"/profile.d", 0o755), os.MkdirAll(etc+"/OpenCL", 0o755)); err != nil {
		t.Fatal(err)
	}
	empty := contents(t, etc)
	set := func(kinds ...string) []HostChange {
		t.Helper()
		files, refused := places.Files(kinds)
		changes, err := s.SetHost(t.Context(), sl, files)
		if err != nil || len(refused) > 0 {
			t.Fatal(err, refused)
		}
		return changes
	}
	for _, c := range set(HostKinds()...) {
		if b, err := os.ReadFile(c.Path); c.Err != nil || !c.Changed || err != nil && c.File != moduleFile {
			t.Errorf("%+v: %q, %v", c, b, err)
		}
	}
	equal(t, "etc", contents(t, etc), []string{
		"OpenCL", "OpenCL/vendors", "OpenCL/vendors/rocm-nightly.icd", "fish", "fish/conf.d", "fish/conf.d/rocm-nightly.fish",
		"ld.so.conf.d", "ld.so.conf.d/rocm-nightly.conf", "modulefiles", "modulefiles/rocm-nightly", "profile.d", "profile.d/rocm-nightly.sh",
	})
	for _, c := range set(HostKinds()...) {
		if c.Err != nil || c.Changed {
			t.Errorf("a second time: %+v", c)
		}
	}
	// Another slot takes them over; nothing else of the record is touched.
	other := s.Slot("rc", "gfx1151")
	install(t, other, night(2))
	withEtc(t, other)
	if err := s.Link(path, sl); err != nil {
		t.Fatal(err)
	}
	files, _ := places.Files([]string{HostProfile})
	changes, err := s.SetHost(t.Context(), other, files)
	if err != nil || len(changes) != 5 || !strings.HasPrefix(textOf(t, etc+"/profile.d/rocm-nightly.sh"), other.CurrentPath()) {
		t.Errorf("%+v, %v", changes, err)
	}
	set()
	equal(t, "etc", contents(t, etc), empty)
	if links := onRecord(t, s); len(links) != 1 || links[0].Path != path {
		t.Errorf("%+v", links)
	}
}

// What is somebody else's stays, and what a generation does not have is said.
func TestHostFilesTouchOnlyTheirOwn(t *testing.T) {
	s, sl, path := linked(t)
	withEtc(t, sl, "OpenCL/vendors/rocm-nightly.icd")
	etc := filepath.Join(filepath.Dir(path), "etc")
	mine := etc + "/profile.d/rocm-nightly.sh"
	if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o755), os.WriteFile(mine, []byte("mine"), 0o644), os.WriteFile(etc+"/fish", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	before := contents(t, etc)
	files, _ := HostPlaces{Etc: etc}.Files([]string{HostProfile, HostFish, HostOpenCL})
	changes, err := s.SetHost(t.Context(), sl, files)
	if err != nil || len(changes) != 3 {
		t.Fatalf("%+v, %v", changes, err)
	}
	for i, want := range []string{"a file is there", "not a directory", "has no etc/OpenCL/vendors/rocm-nightly.icd"} {
		if c := changes[i]; c.Err == nil || c.Changed || !strings.Contains(c.Err.Error(), want) {
			t.Errorf("%+v", c)
		}
	}
	equal(t, "etc", contents(t, etc), before)
	// One that led to a file goes when what is active has it no more.
	withEtc(t, sl)
	files, _ = HostPlaces{Etc: etc}.Files([]string{HostOpenCL})
	if changes, err := s.SetHost(t.Context(), sl, files); err != nil || changes[0].Err != nil {
		t.Fatalf("%+v, %v", changes, err)
	}
	install(t, sl, night(2))
	if changes, err := s.SetHost(t.Context(), sl, files); err != nil || changes[0].Err == nil || len(onRecord(t, s)) != 0 {
		t.Errorf("%+v, %v", changes, err)
	}
	equal(t, "etc", contents(t, etc), before)
}

func TestHostPlacesOfAUser(t *testing.T) {
	home := scratch(t)
	p := HostPlaces{Home: home, Config: home + "/.config"}
	files, refused := p.Files(HostKinds())
	if len(files) != 0 || len(refused) != 5 {
		t.Errorf("%+v, %+v", files, refused)
	}
	for _, dir := range []string{".config/fish", "modulefiles"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, refused = p.Files(HostKinds())
	if len(refused) != 3 || len(files) != 2 || files[0].Path != home+"/.config/fish/conf.d/rocm-nightly.fish" || files[1].Path != home+"/modulefiles/rocm-nightly" {
		t.Errorf("%+v, %+v", files, refused)
	}
	if files, refused := (HostPlaces{}).Files(HostKinds()); len(files) != 0 || len(refused) != 5 {
		t.Errorf("%+v, %+v", files, refused)
	}
	// Every directory that a module command looks in gets the module.
	etc := filepath.Join(home, "etc")
	for _, dir := range moduleDirs[1:] {
		if err := os.MkdirAll(filepath.Join(etc, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := (HostPlaces{Etc: etc}).Files([]string{HostModulefiles}); len(files) != 2 {
		t.Errorf("%+v", files)
	}
}
