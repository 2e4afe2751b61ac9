package e2e

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// crashStep is one thing that a user or a timer does.
type crashStep struct {
	name   string
	weight int
	words  string // of the command line; {1} stands for a night, {link} for a link
}

// crashSteps are what is killed. A verb more is a line more.
var crashSteps = []crashStep{
	{"update", 8, "update --no-bump --version {1}"},
	{"newest", 2, "update --no-bump"},
	{"rollback", 2, "rollback"},
	{"use", 2, "use {1}"},
	{"activate", 1, "activate gfx1151 {1}"},
	{"hold", 1, "hold --reason axe"},
	{"unhold", 1, "unhold"},
	{"prune", 2, "prune --last 1"},
	{"remove", 1, "remove {1}"},
	{"verify", 1, "verify"},
	{"repair", 1, "verify --repair"},
	{"link", 1, "link {link}"},
	{"unlink", 1, "unlink {link}"},
	{"tarball", 1, "tarball --verify"},
}

// line is the command line of a step.
func (a *axe) line(words, night string) []string {
	return strings.Fields(strings.NewReplacer("{1}", night, "{link}", filepath.Join(a.disk, "opt/link")).Replace(words))
}

// crashNights are published; so few that they are installed again and again.
const crashNights = 5

// number is a number of the environment.
func number(name string, usual int64) int64 {
	if v, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
		return v
	}
	return usual
}

// TestPromiseTheNextRunMendsWhatWasKilled kills the program at random instants
// of updates, rollbacks and switches. Whatever it was doing, everything under a
// final name is whole, and the next run needs nobody's help.
// ROCM_NIGHTLY_AXE_SEED repeats a run, ROCM_NIGHTLY_AXE_KILLS makes it longer.
func TestPromiseTheNextRunMendsWhatWasKilled(t *testing.T) {
	seed := number("ROCM_NIGHTLY_AXE_SEED", time.Now().UnixNano())
	kills := int(number("ROCM_NIGHTLY_AXE_KILLS", 200))
	t.Logf("ROCM_NIGHTLY_AXE_SEED=%d ROCM_NIGHTLY_AXE_KILLS=%d", seed, kills)
	c := &crashLoop{axe: newAxe(t, crashNights), rng: rand.New(rand.NewPCG(uint64(seed), 0)), cycle: map[string]time.Duration{}, struck: map[string]int{}}
	c.configure(t, "keep_tarballs: 1\n")
	c.install(t, 0)
	for n := 1; n < crashNights; n++ { // how long each takes, undisturbed
		c.measure(t, axeNight(n))
	}
	for done := 0; done < kills && !t.Failed(); done += 5 {
		for range 5 {
			c.kill(t)
		}
		c.mend(t)
	}
	t.Logf("killed in the middle: %v; ended before: %d", c.struck, c.ended)
	if struck := c.struck["update"]; struck < kills/20 {
		t.Errorf("only %d updates were killed: nothing was tested", struck)
	}
}

// crashLoop is a store whose program is killed.
type crashLoop struct {
	*axe
	rng    *rand.Rand
	cycle  map[string]time.Duration
	struck map[string]int
	ended  int
}

// measure runs every step once.
func (c *crashLoop) measure(t *testing.T, night string) {
	t.Helper()
	for _, s := range crashSteps {
		began := time.Now()
		c.do(t, nil, c.line(s.words, night)...)
		c.cycle[s.name] = max(c.cycle[s.name], time.Since(began))
	}
}

// kill runs a step and kills it at a time of up to 1.1 times what it takes.
func (c *crashLoop) kill(t *testing.T) {
	t.Helper()
	var all []crashStep
	for _, s := range crashSteps {
		for range s.weight {
			all = append(all, s)
		}
	}
	s := all[c.rng.IntN(len(all))]
	night := axeNight(c.rng.IntN(crashNights))
	after := time.Duration(c.rng.Int64N(int64(c.cycle[s.name]) * 11 / 10))
	ctx, cancel := context.WithTimeout(t.Context(), after) // which kills with SIGKILL
	defer cancel()
	cmd := c.command(ctx, nil, c.line(s.words, night)...)
	out, _ := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil: // before it had begun
		return
	case killedBySignal(cmd):
		c.struck[s.name]++
	case cmd.ProcessState.ExitCode() > 1 || cmd.ProcessState.ExitCode() < 0:
		t.Errorf("%s %s: %v\n%s", s.name, night, cmd.ProcessState, out)
	default:
		c.ended++
	}
	at := s.name + " " + night + " killed after " + after.String()
	c.look(t, at)
	if c.active() == "" {
		t.Errorf("%s: nothing is active", at)
	}
}

// mend lets an update end by itself, and holds the store against what it is to be.
func (c *crashLoop) mend(t *testing.T) {
	t.Helper()
	night := axeNight(c.rng.IntN(crashNights))
	c.do(t, nil, "unhold").want(t, 0, "", "")
	r := c.do(t, nil, "update", "--no-bump", "--version", night)
	c.look(t, "mended")
	if r.code != 0 || c.active() != night {
		t.Errorf("the next run: exit %d, %s is active, not %s\n%s%s", r.code, c.active(), night, r.stdout, r.stderr)
	}
	// Downloads of other nights wait for a run that wants them.
	for _, name := range c.debris(t) {
		if len(name) < 5 || name[:5] != "spool" {
			t.Errorf("the next run leaves %s", name)
		}
	}
	if e := c.end(t); len(e.generations) > 4 {
		t.Errorf("generations pile up: %v", e.generations)
	}
	if kept, _ := filepath.Glob(filepath.Join(c.root, "tarballs/nightly/*")); len(kept) > 2 { // the last, and that of what is active
		t.Errorf("tarballs pile up: %v", kept)
	}
	if to, err := os.Readlink(filepath.Join(c.disk, "opt/link")); err == nil && to != c.slot("current") {
		t.Errorf("the link leads to %s", to)
	}
}
