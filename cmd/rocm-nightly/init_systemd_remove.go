package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/systemd"
)

// removeUnits removes what this verb has written, wherever it would write now.
func (a *app) removeUnits(places map[systemd.Kind]string) error {
	paths := writtenUnits(places)
	for _, path := range paths {
		if err := a.removeUnit(path); err != nil {
			return err
		}
	}
	if len(paths) == 0 {
		fmt.Fprintln(a.stdout, "there are no units that this verb has written")
		return nil
	}
	fmt.Fprintln(a.stdout, "\nnext: systemctl daemon-reload; what was started goes on until it is stopped (systemctl stop 'rocm-nightly*')")
	return nil
}

func (a *app) removeUnit(path string) error {
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("init systemd: %w", err)
	}
	fmt.Fprintf(a.stdout, "removed %s\n", printable(path))
	if dir := filepath.Dir(path); strings.HasSuffix(dir, ".d") && strings.HasPrefix(filepath.Base(dir), "rocm-nightly") {
		_ = os.Remove(dir) // if it has drop-ins of somebody else, it stays
	}
	return nil
}

// removeDropIns removes those that this verb once laid over the units of files, and
// that are not among them now: a hole that nobody asks for any more is closed.
func (a *app) removeDropIns(places map[systemd.Kind]string, files []systemd.File) error {
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[filepath.Join(places[f.Kind], f.Path)] = true
	}
	for _, path := range writtenUnits(places) {
		unit, dropIn := strings.CutSuffix(filepath.Dir(path), ".d")
		if !dropIn || !wanted[unit] || wanted[path] {
			continue
		}
		if err := a.removeUnit(path); err != nil {
			return err
		}
	}
	return nil
}

// writtenUnits lists the files of this verb that are there.
func writtenUnits(places map[systemd.Kind]string) []string {
	var paths []string
	for _, dir := range places {
		for _, pattern := range []string{"rocm-nightly*", "rocm-nightly*.d/*.conf"} {
			// The pattern is good: that is the only error.
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				ours, err := unitIsOurs(path)
				if _, gone := os.Lstat(path); ours && err == nil && !errors.Is(gone, fs.ErrNotExist) {
					paths = append(paths, path)
				}
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// unitsLeft warns of units that would install again what was uninstalled.
func (a *app) unitsLeft() {
	for _, user := range []bool{false, true} {
		o := initSystemdOptions{user: user}
		places, err := a.unitPlaces(nil, o)
		if err != nil {
			continue
		}
		if left := writtenUnits(places); len(left) > 0 {
			a.log(a.stderr).Warn("units are left, which install again (rocm-nightly init systemd --remove)", "first", left[0])
			return
		}
	}
}
