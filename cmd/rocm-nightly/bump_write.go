package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// written is what bump --write --json prints.
type written struct {
	Schema int             `json:"schema"`
	Dir    string          `json:"dir"`
	Event  string          `json:"event"`
	Edits  []update.Edited `json:"edits"`
	Config string          `json:"config,omitempty"` // that was inferred, YAML
	Exit   int             `json:"exit"`
}

// bumpWrite edits a checkout: what the config names there, else what is found.
func (a *app) bumpWrite(ctx context.Context, cfg *config.Config, uo update.Options, o bumpOptions) error {
	dir, err := filepath.Abs(o.write)
	if err != nil {
		return usage(err)
	}
	b, inferred, err := a.writeBump(ctx, cfg, dir, o)
	if err != nil {
		return err
	}
	files, targets := filesOf(cfg, b, o.arch)
	repo := updateBump(b).Repo
	repo.Files = files
	if len(files) == 0 {
		return usage(fmt.Errorf("bump: bump %s has no pin of %s", b.Name, strings.Join(o.arch, ", ")))
	}
	channel := b.Channel
	if channel == "" {
		channel = "nightly"
	}
	pins, err := update.Pins(ctx, uo, channel, targets)
	if err != nil {
		return err
	}
	text := ""
	if inferred {
		if text, err = inferredText(b); err != nil {
			return err
		}
	}
	res, err := bump.Write(dir, repo, pins, bump.Options{Migrate: o.migrate, Older: uo.PinsMayGoBack()})
	if err != nil {
		return fmt.Errorf("bump: edit %s: %w", dir, err)
	}
	a.printWritten(dir, res, text)
	return nil
}

// filesOf are the files of a bump, those of the targets alone, and the targets.
func filesOf(cfg *config.Config, b config.Bump, arch []string) (files []bump.File, targets []string) {
	wanted := map[string]bool{}
	for _, t := range arch {
		name, _ := cfg.GFX.Canonical(t)
		wanted[name] = true
	}
	for _, f := range updateBump(b).Files {
		if name, _ := cfg.GFX.Canonical(f.Target); len(wanted) > 0 && !wanted[name] {
			continue
		}
		files = append(files, f)
		if !slices.Contains(targets, f.Target) {
			targets = append(targets, f.Target)
		}
	}
	return files, targets
}

func (a *app) printWritten(dir string, res *bump.Result, inferred string) {
	rep := written{Schema: 1, Dir: dir, Event: update.EventUpToDate, Edits: []update.Edited{}, Config: inferred}
	for _, e := range res.Edits {
		rep.Event = update.EventUpdated
		rep.Edits = append(rep.Edits, update.Edited{Path: e.Path, Key: e.Attr, Target: e.Target, From: e.From, To: e.To})
	}
	if a.json {
		a.printJSON(rep)
		return
	}
	fmt.Fprint(a.stdout, printable(inferred))
	for _, e := range rep.Edits {
		fmt.Fprintf(a.stderr, "%s\n", printable(editText(e)))
	}
	if len(rep.Edits) == 0 {
		fmt.Fprintf(a.stderr, "nothing to edit: %s\n", printable(res.Message))
	}
}

// editText is an edit in one line.
func editText(e update.Edited) string {
	return fmt.Sprintf("%s: %s: %s -> %s", e.Path, e.Key, e.From, e.To)
}

// writeBump chooses the bump whose files are edited: the one that is named, the one
// that there is, or what the checkout seems to hold.
func (a *app) writeBump(ctx context.Context, cfg *config.Config, dir string, o bumpOptions) (b config.Bump, inferred bool, err error) {
	switch {
	case len(o.names) > 1:
		return b, false, usage(errors.New("bump: --write edits one checkout: name one bump"))
	case len(o.names) == 1:
		for _, b := range cfg.Bump {
			if b.Name == o.names[0] {
				return b, false, nil
			}
		}
		return b, false, usage(fmt.Errorf("bump: no bump of the config is called %q", o.names[0]))
	case len(cfg.Bump) == 1:
		return cfg.Bump[0], false, nil
	case len(cfg.Bump) > 1:
		return b, false, usage(fmt.Errorf("bump: the config has %d bumps: name the one of this checkout", len(cfg.Bump)))
	}
	found, err := findPins(ctx, dir, pinfile.GuessPins)
	if err != nil {
		return b, false, fmt.Errorf("bump: look for pins in %s: %w", dir, err)
	}
	files, err := inferPins(found, o.arch, func(t string) string { name, _ := cfg.GFX.Canonical(t); return name })
	if err != nil {
		return b, false, fmt.Errorf("bump: infer a config for %s: %w", dir, err)
	}
	return config.Bump{Name: inferredName(dir), Forge: "git", URL: originOf(dir), Files: files}, true, nil
}

// Limits of a checkout that is looked through.
const (
	maxLooked  = 50000 // files
	maxGuesses = 200
)

// findPins looks for pins in every file of a checkout. Links are not followed, and
// what git keeps for itself is passed over.
func findPins(ctx context.Context, dir string, guess func(path string, src []byte) []pinfile.Guess) ([]pinfile.Guess, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []pinfile.Guess
	looked := 0
	err = fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		if looked++; looked > maxLooked {
			return fmt.Errorf("it has more than %d files: write a bump into the config, and name it", maxLooked)
		}
		fi, err := e.Info()
		if err != nil || fi.Size() > pinfile.MaxLen {
			return nil // gone since, or nothing that people edit
		}
		src, err := fs.ReadFile(root.FS(), p)
		if err != nil {
			return nil // of another user, perhaps: not a file to edit
		}
		if found = append(found, guess(p, src)...); len(found) > maxGuesses {
			return fmt.Errorf("it seems to hold more than %d pins: write a bump into the config, and name it", maxGuesses)
		}
		return nil
	})
	return found, err
}

// inferPins makes the files of a bump of what was found. One value that could be
// two things, and a pin whose target nothing tells, are refused with the candidates.
func inferPins(found []pinfile.Guess, arch []string, canonical func(string) string) ([]config.Pins, error) {
	if len(found) == 0 {
		return nil, errors.New("no pin of one of AMD's tarballs is found there (write a bump into the config: see config.yaml)")
	}
	found = withoutFollowers(found)
	var files []config.Pins
	owner := map[string]pinfile.Guess{}
	version := map[string]string{}
	for _, g := range found {
		if g.Target == "" && len(arch) == 1 {
			g.Target = arch[0]
		}
		if g.Target == "" || canonical(g.Target) == "" {
			return nil, fmt.Errorf("nothing tells which target these are for (name it with --arch):%s", candidates(found, g.Path))
		}
		for key := range g.Set {
			at := g.Path + "\x00" + key
			other, taken := owner[at]
			same := canonical(other.Target) == canonical(g.Target) || ownKey(g, other) && ownKey(other, g)
			if taken && (!same || other.Set[key] != g.Set[key]) {
				return nil, fmt.Errorf("%s of %s may be one of several things (write a bump into the config):%s", key, g.Path, candidates(found, g.Path))
			}
			owner[at] = g
		}
		at := g.Path + "\x00" + canonical(g.Target)
		if old, taken := version[at]; taken && old != g.Old {
			return nil, fmt.Errorf("%s of %s may be meant by several versions (write a bump into the config):%s", g.Target, g.Path, candidates(found, g.Path))
		}
		version[at] = g.Old
		files = append(files, config.Pins{Path: g.Path, Format: g.Format, Target: g.Target, Set: g.Set})
	}
	return files, nil
}

// withoutFollowers leaves out what changes by itself: the .SRCINFO beside a PKGBUILD.
func withoutFollowers(found []pinfile.Guess) []pinfile.Guess {
	made := map[string]bool{}
	for _, g := range found {
		if g.Format == "pkgbuild" {
			made[path.Join(path.Dir(g.Path), ".SRCINFO")] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(g pinfile.Guess) bool { return made[g.Path] })
}

// ownKey reports whether g sets what other does not: one version may be that of several
// targets, each with its hash.
func ownKey(g, other pinfile.Guess) bool {
	for key := range g.Set {
		if _, shared := other.Set[key]; !shared {
			return true
		}
	}
	return false
}

// candidates lists what was found in a file, each on a line.
func candidates(found []pinfile.Guess, path string) string {
	var b strings.Builder
	for _, g := range found {
		if g.Path != path {
			continue
		}
		target := g.Target
		if target == "" {
			target = "?"
		}
		fmt.Fprintf(&b, "\n  %s: target %s, %s", g.Path, target, g.Why)
		for _, key := range slices.Sorted(maps.Keys(g.Set)) {
			fmt.Fprintf(&b, ", %s: %s", key, g.Set[key])
		}
	}
	return b.String()
}

// inferredName is a name for the bump of a checkout.
func inferredName(dir string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			return r
		}
		return -1
	}, filepath.Base(dir))
	if name = strings.TrimLeft(name, "._-"); name == "" {
		return "rocm"
	}
	return name[:min(len(name), 64)]
}

// noOrigin stands for an address that is not known.
const noOrigin = "https://git.example.net/OWNER/NAME.git"

// originOf is the address that a checkout was cloned from, as its .git/config says:
// no git is run in a checkout that may be somebody else's.
func originOf(dir string) string {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return noOrigin
	}
	defer root.Close()
	text, err := fs.ReadFile(root.FS(), ".git/config")
	if err != nil || len(text) > 1<<20 {
		return noOrigin
	}
	in := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			in = line == `[remote "origin"]`
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !in || !ok || strings.TrimSpace(key) != "url" {
			continue
		}
		if at := strings.TrimSpace(value); bump.CheckURL(at) == nil && !strings.Contains(at, "@") {
			return at
		}
	}
	return noOrigin
}

// inferredText is the config that was inferred, for people and for the config file.
func inferredText(b config.Bump) (string, error) {
	text, err := yaml.Marshal(struct {
		Bump []config.Bump `yaml:"bump"`
	}{[]config.Bump{b}})
	if err != nil {
		return "", fmt.Errorf("write the config that was inferred: %w", err)
	}
	head := "# what this checkout seems to pin; for the config of rocm-nightly\n"
	if b.URL == noOrigin {
		head += "# url: write the repository's address there\n"
	}
	return head + string(text), nil
}
