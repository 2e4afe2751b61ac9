package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// The kinds of HostFile: what of a prefix's etc/ shells and loaders look for.
const (
	HostProfile     = "profile"     // /etc/profile.d: login shells
	HostFish        = "fish"        // fish/conf.d: every fish
	HostLDConfig    = "ldconfig"    // /etc/ld.so.conf.d: ldconfig
	HostOpenCL      = "opencl"      // /etc/OpenCL/vendors: OpenCL's loader
	HostModulefiles = "modulefiles" // environment-modules and Lmod
)

// HostKinds lists them.
func HostKinds() []string {
	return []string{HostProfile, HostFish, HostLDConfig, HostOpenCL, HostModulefiles}
}

// HostPlaces is where a machine's, or a user's, shells and loaders look. What is
// empty is a place that there is not.
type HostPlaces struct {
	Etc    string // /etc; for who may not write there ""
	Home   string // of a user, where Etc is ""
	Config string // $XDG_CONFIG_HOME of a user
}

// HostFile is one link from where something looks into a prefix.
type HostFile struct {
	Kind string
	Path string // absolute
	File string // below the prefix
}

// HostRefusal says why there is no place for a kind.
type HostRefusal struct {
	Kind string
	Why  string // and what to try
}

// moduleDirs are where module commands look without being told, below /etc:
// Fedora's and Lmod's own, Debian's of environment-modules, Debian's of Lmod.
var moduleDirs = []string{"modulefiles", "environment-modules/modules", "lmod/modules"}

// Files lists what to link for the kinds that are wanted, and what has no place.
func (p HostPlaces) Files(kinds []string) (files []HostFile, refused []HostRefusal) {
	for _, kind := range HostKinds() {
		if !slices.Contains(kinds, kind) {
			continue
		}
		found, why := p.system(kind), ""
		if p.Etc == "" {
			found, why = p.user(kind)
		}
		if why != "" {
			refused = append(refused, HostRefusal{kind, why})
		}
		files = append(files, found...)
	}
	return files, refused
}

// system is where the machine looks.
func (p HostPlaces) system(kind string) []HostFile {
	at := func(path, file string) []HostFile {
		return []HostFile{{kind, filepath.Join(p.Etc, path), file}}
	}
	switch kind {
	case HostProfile:
		return at("profile.d/rocm-nightly.sh", "etc/profile.d/rocm-nightly.sh")
	case HostFish:
		return at("fish/conf.d/rocm-nightly.fish", "etc/env.fish")
	case HostLDConfig:
		return at("ld.so.conf.d/rocm-nightly.conf", "etc/ld.so.conf.d/rocm-nightly.conf")
	case HostOpenCL:
		return at("OpenCL/vendors/rocm-nightly.icd", "etc/OpenCL/vendors/rocm-nightly.icd")
	}
	var files []HostFile
	for _, dir := range moduleDirs {
		if isDir(filepath.Join(p.Etc, dir)) {
			files = append(files, at(dir+"/rocm-nightly", moduleFile)...)
		}
	}
	if len(files) == 0 {
		return at(moduleDirs[0]+"/rocm-nightly", moduleFile)
	}
	return files
}

// moduleFile holds a module file for each version, in a prefix.
const moduleFile = "etc/modulefiles/rocm-nightly"

// user is where a user's own programs look, and why there is no such place.
func (p HostPlaces) user(kind string) (files []HostFile, why string) {
	switch kind {
	case HostFish:
		dir := filepath.Join(p.Config, "fish")
		if p.Config == "" || !isDir(dir) {
			return nil, "there is no " + dir + ": start fish once, or make that directory"
		}
		return []HostFile{{kind, filepath.Join(dir, "conf.d/rocm-nightly.fish"), "etc/env.fish"}}, ""
	case HostModulefiles:
		for _, name := range []string{"privatemodules", "modulefiles"} {
			if dir := filepath.Join(p.Home, name); p.Home != "" && isDir(dir) {
				return []HostFile{{kind, filepath.Join(dir, "rocm-nightly"), moduleFile}}, ""
			}
		}
		return nil, "there is neither ~/privatemodules (which `module load use.own` looks in) nor ~/modulefiles: make one, or say: module use PREFIX/etc/modulefiles"
	case HostProfile:
		return nil, "/etc/profile.d is root's: write `. PREFIX/etc/env.sh` into ~/.profile"
	}
	return nil, "only root can register it with the whole machine: as a user, enter the environment (rocm-nightly env)"
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// HostChange is what became of one host file.
type HostChange struct {
	Link
	Changed bool      // made, moved or removed now
	Gone    *Unlinked // it was removed
	Err     error     // why it is not as it was wanted; a *LinkError names what is in the way
}

// SetHost makes the host files that are on record those that are wanted, each a
// link to the file of what is active in sl: what is missing is made, with its
// directories, and what is wanted no more is removed. sl may be nil where
// nothing is wanted. Only what is absent or ours is touched, as by MakeLink.
// What went wrong with one of them is in its entry; err is of the record itself.
func (s *Store) SetHost(ctx context.Context, sl *Slot, want []HostFile) (changes []HostChange, err error) {
	links, err := s.Links()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if l.By != LinkByHost || slices.ContainsFunc(want, func(f HostFile) bool { return canonical(f.Path) == canonical(l.Path) }) {
			continue
		}
		gone, err := s.DropLink(ctx, l.Path)
		changes = append(changes, HostChange{Link: l, Changed: gone.Removed, Gone: &gone, Err: err})
	}
	for _, f := range want {
		before, _ := s.LinkStatus(f.Path)
		l, err := s.MakeLink(ctx, sl, LinkOptions{Path: f.Path, File: f.File, By: LinkByHost, MakeDirs: true})
		var missing *LinkError
		if errors.As(err, &missing) && before.State == LinkOurs && before.Dangling {
			// What is active has no such file, and one that was wanted leads nowhere.
			_, derr := s.DropLink(ctx, f.Path)
			err = errors.Join(err, derr)
		}
		if l.Path == "" {
			l = Link{Path: f.Path, File: f.File, By: LinkByHost, Slot: sl.Name()}
		}
		after, _ := s.LinkStatus(f.Path)
		changes = append(changes, HostChange{Link: l, Changed: before.Target != after.Target, Err: err})
	}
	return changes, nil
}
