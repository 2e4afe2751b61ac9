package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/arch"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const (
	name        = "rocm-nightly"
	homepage    = "https://github.com/rocm-nightly/rocm-nightly"
	maintainer  = "The rocm-nightly authors <rocm-nightly@users.noreply.github.com>"
	description = "AMD's ROCm nightlies, installed and kept up to date\n" +
		"rocm-nightly takes AMD's ROCm nightlies from AMD's index to a working,\n" +
		"verified prefix on disk, with a way back, and to a pull request in the\n" +
		"repository that packages them. Nothing is enabled by installing it."
	docDir = "/usr/share/doc/" + name
)

// packages makes deb, rpm and Arch package of what install.sh put below stage.
func packages(stage string, o options) error {
	v, err := packageVersions(o.version)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		is      string
		version string
		pack    nfpm.Packager
		more    func(*stager, *nfpm.Info) error
	}{
		{"deb", v.deb, deb.Default, debian},
		{"rpm", v.rpm, rpm.DefaultRPM, redHat},
		{"archlinux", v.arch, arch.Default, archLinux},
	} {
		if err := packageOne(stage, o, kind.version, kind.pack, kind.is, kind.more); err != nil {
			return fmt.Errorf("make the %s package: %w", kind.is, err)
		}
	}
	return nil
}

func packageOne(stage string, o options, version string, pack nfpm.Packager, kind string, more func(*stager, *nfpm.Info) error) error {
	tmp, err := os.MkdirTemp("", "packaging-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s := &stager{dir: stage, tmp: tmp, scripts: o.scripts, when: o.when, version: version}
	if err := s.walk(kind); err != nil {
		return err
	}
	info := &nfpm.Info{
		Name: name, Arch: o.arch, Platform: "linux", Version: version, VersionSchema: "none", Section: "utils", Priority: "optional",
		Maintainer: maintainer, Description: description, Homepage: homepage, License: "MIT", DisableGlobbing: true, MTime: o.when,
	}
	if err := more(s, info); err != nil {
		return err
	}
	info.Contents = s.contents
	if info, err = prepared(info, kind); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pack.Package(info, &b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, fileName(kind, o.version, o.arch)), b.Bytes(), 0o644)
}

// prepared fills what nfpm's own command would.
func prepared(info *nfpm.Info, kind string) (*nfpm.Info, error) {
	info = nfpm.WithDefaults(info)
	return info, nfpm.PrepareForPackager(info, kind)
}

// fileName: all that is released of one version has one name but for its ending.
func fileName(kind, version, goarch string) string {
	suffix := map[string]string{"deb": ".deb", "rpm": ".rpm", "archlinux": ".pkg.tar.zst"}[kind]
	return name + "_" + strings.TrimPrefix(version, "v") + "_linux_" + goarch + suffix
}

// stager collects the contents of one package.
type stager struct {
	dir, tmp, scripts string
	when              time.Time
	version           string
	contents          files.Contents
	units             []string // of the system, that can be enabled or stopped
	made              int
}

// walk takes what is staged, with manuals compressed as distributions have them.
func (s *stager) walk(kind string) error {
	return filepath.WalkDir(s.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, p)
		if err != nil {
			return err
		}
		to := "/" + filepath.ToSlash(rel)
		if e.IsDir() {
			if ours(to) {
				s.add(&files.Content{Destination: to, Type: files.TypeDir, FileInfo: s.info(0o755)})
			}
			return nil
		}
		text, mode, err := regular(p, e)
		if err != nil {
			return err
		}
		if dir, file := path.Split(to); dir == "/usr/lib/systemd/system/" {
			s.units = append(s.units, file)
		}
		return s.file(place(kind, to), text, mode)
	})
}

// ours reports whether a directory belongs to the package and not to the system.
func ours(dir string) bool {
	for at := dir; at != "/"; at = path.Dir(at) {
		if path.Base(at) == name {
			return true
		}
	}
	return false
}

// place is where a kind of system has what others have elsewhere.
func place(kind, to string) string {
	if file, ok := strings.CutPrefix(to, "/usr/share/zsh/site-functions/"); ok && kind == "deb" {
		return "/usr/share/zsh/vendor-completions/" + file
	}
	if to == docDir+"/LICENSE" && kind == "archlinux" || to == docDir+"/LICENSE" && kind == "rpm" {
		return "/usr/share/licenses/" + name + "/LICENSE"
	}
	return to
}

// file adds one file, compressed if it is of the manual.
func (s *stager) file(to string, text []byte, mode fs.FileMode) error {
	if strings.HasPrefix(to, "/usr/share/man/") {
		to += ".gz"
		text = compressed(text)
	}
	from := filepath.Join(s.tmp, fmt.Sprint(s.made))
	s.made++
	if err := os.WriteFile(from, text, 0o600); err != nil {
		return err
	}
	c := &files.Content{Source: from, Destination: to, FileInfo: s.info(mode)}
	if strings.HasPrefix(to, "/etc/") {
		c.Type = files.TypeConfigNoReplace
	}
	s.add(c)
	return nil
}

func (s *stager) add(c *files.Content) { s.contents = append(s.contents, c) }

// drop takes out a file that was staged.
func (s *stager) drop(to string) {
	for i, c := range s.contents {
		if c.Destination == to {
			s.contents = append(s.contents[:i], s.contents[i+1:]...)
			return
		}
	}
}

func (s *stager) info(mode fs.FileMode) *files.ContentFileInfo {
	return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: s.when}
}

// script reads a maintainer script and names the units in it.
func (s *stager) script(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.scripts, file))
	if err != nil {
		return "", err
	}
	text = bytes.ReplaceAll(text, []byte("@UNITS@"), []byte(strings.Join(s.units, " ")))
	to := filepath.Join(s.tmp, strings.ReplaceAll(file, "/", "-"))
	return to, os.WriteFile(to, text, 0o600)
}

// compressed is gzip -9n.
func compressed(text []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a good one
	_, _ = z.Write(text)                                  // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}
