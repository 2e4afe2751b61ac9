package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// linked are the modules of a binary, as its linker recorded them.
func linked(binary string) (*debug.BuildInfo, []*debug.Module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, nil, fmt.Errorf("read what %s was built from: %w", binary, err)
	}
	deps := slices.Clone(info.Deps)
	for i, d := range deps {
		if d.Replace != nil {
			deps[i] = d.Replace
		}
	}
	slices.SortFunc(deps, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	return info, deps, nil
}

// licenseName is a file of a module that says under which terms it may be passed on.
var licenseName = regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying|notice|copyright|patents)([-_.].*)?$`)

// licenses writes the licences of all that is linked into a binary, which have to go
// with it.
func licenses(binary string, o options) error {
	_, deps, err := linked(binary)
	if err != nil {
		return err
	}
	dirs, err := moduleDirs(o.goTool)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("What is linked into rocm-nightly, and the terms of each.\n")
	root, err := exec.Command(o.goTool, "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("ask for GOROOT: %w", err)
	}
	if err := writeLicense(&b, "The Go standard library", strings.TrimSpace(string(root))); err != nil {
		return err
	}
	for _, d := range deps {
		if err := writeLicense(&b, d.Path+" "+d.Version, dirs[d.Path+"@"+d.Version]); err != nil {
			return err
		}
	}
	return os.WriteFile(o.out, b.Bytes(), 0o644)
}

// moduleDirs says where the sources of each module are.
func moduleDirs(goTool string) (map[string]string, error) {
	cmd := exec.Command(goTool, "list", "-m", "-json", "all")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	dirs := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Version, Dir string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return dirs, nil
		} else if err != nil {
			return nil, fmt.Errorf("list modules: %w", err)
		}
		dirs[m.Path+"@"+m.Version] = m.Dir
	}
}

func writeLicense(b *bytes.Buffer, title, dir string) error {
	if dir == "" {
		return fmt.Errorf("find the sources of %s: not downloaded (try: go mod download)", title)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if !licenseName.MatchString(e.Name()) || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 72), title, e.Name(), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	if !found {
		return fmt.Errorf("%s has no licence among %d files", title, len(entries))
	}
	return nil
}

func splitLines(text []byte) []string { return strings.Split(strings.TrimSpace(string(text)), "\n") }

// sha256Of is the digest of a file, in hex.
func sha256Of(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
