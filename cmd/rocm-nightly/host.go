package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// updateHost is the config's host as the pipeline wants it. The install that it
// follows is the first of the whole config, whichever this run is about.
func (a *app) updateHost(cfg *config.Config) update.Host {
	h := update.Host{Kinds: hostKinds(cfg.Host), Places: a.hostPlaces(cfg.Host), Slot: cfg.Host.Install}
	if target, known := cfg.GFX.Canonical(h.Slot); known {
		h.Slot = target
	}
	all := cfg.Installs
	if a.cfg != nil {
		all = a.cfg.Installs
	}
	if len(all) > 0 {
		h.Of = update.Install{Target: all[0].Target, Channel: all[0].Channel}
	} else if h.Slot == "" {
		h.Kinds = nil
	}
	if cfg.Host.Etc == "" && a.uid == 0 {
		h.LDConfig = a.runLDConfig
	}
	return h
}

// hostKinds lists what the config asks for.
func hostKinds(h config.Host) []string {
	var kinds []string
	for kind, on := range map[string]bool{
		store.HostProfile: h.Profile, store.HostFish: h.Fish, store.HostLDConfig: h.LDConfig, store.HostOpenCL: h.OpenCL, store.HostModulefiles: h.Modulefiles,
	} {
		if on {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// hostPlaces is where shells and loaders look: the machine's, or the user's own.
func (a *app) hostPlaces(h config.Host) store.HostPlaces {
	switch {
	case h.Etc != "":
		return store.HostPlaces{Etc: h.Etc}
	case a.uid == 0:
		return store.HostPlaces{Etc: "/etc"}
	}
	p := store.HostPlaces{Home: a.getenv("HOME"), Config: a.getenv("XDG_CONFIG_HOME")}
	if !filepath.IsAbs(p.Config) {
		p.Config = filepath.Join(p.Home, ".config")
	}
	if !filepath.IsAbs(p.Home) {
		p = store.HostPlaces{}
	}
	return p
}

// hostLinks lists the paths that the config's host asks for.
func hostLinks(cfg *config.Config, a *app) []string {
	var paths []string
	files, _ := a.hostPlaces(cfg.Host).Files(hostKinds(cfg.Host))
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return paths
}

// ldconfigTime is more than ldconfig takes on a machine with slow disks.
const ldconfigTime = time.Minute

// runLDConfig rebuilds the loader's cache.
func (a *app) runLDConfig(ctx context.Context) error {
	if a.ldconfig != nil {
		return a.ldconfig(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, ldconfigTime)
	defer cancel()
	var err error
	for _, exe := range []string{"/sbin/ldconfig", "/usr/sbin/ldconfig", "/usr/bin/ldconfig"} {
		cmd := exec.CommandContext(ctx, exe)
		cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
		cmd.Dir, cmd.WaitDelay = "/", time.Second
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		if len(out) > 0 {
			return fmt.Errorf("%w: %s", err, plain.Cut(string(out), 300))
		}
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// ldconfigNow runs ldconfig where it reads the machine's own /etc.
func (a *app) ldconfigNow(ctx context.Context, cfg *config.Config) {
	if cfg.Host.Etc != "" || a.uid != 0 {
		return
	}
	if err := a.runLDConfig(ctx); err != nil {
		a.log(a.stderr).Warn("ldconfig failed", "error", err)
	}
}

// ldconfigAfter runs ldconfig after a switch of sl, if the loader's cache has its
// libraries: their paths go through current, but the names are those of before.
func (a *app) ldconfigAfter(ctx context.Context, sl *store.Slot) {
	cfg, err := a.config()
	if err != nil {
		return
	}
	links, err := sl.Store().Links()
	if err != nil {
		a.log(a.stderr).Warn("it is not known whether the loader's cache has these libraries: run ldconfig if host.ldconfig is true", "error", err)
		return
	}
	if !slices.ContainsFunc(links, func(l store.Link) bool { return l.Slot == sl.Name() && isLDConfig(l.File) }) {
		return
	}
	if a.uid != 0 {
		a.log(a.stderr).Warn("the loader's cache still has the libraries of before: sudo ldconfig", "install", sl.Name())
		return
	}
	a.ldconfigNow(ctx, cfg)
}

// isLDConfig reports whether a file of a prefix is read by ldconfig.
func isLDConfig(file string) bool { return strings.HasPrefix(file, "etc/ld.so.conf.d/") }
