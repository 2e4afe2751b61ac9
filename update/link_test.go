package update

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// Whose /opt/rocm is is asked where it is taken, and only there.
func TestWhoseATakenLinkIs(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	link := filepath.Join(t.TempDir(), "rocm")
	var asked []string
	w.o.Installs[0].Link = link
	w.o.Owner = func(_ context.Context, path string) string {
		asked = append(asked, path)
		return "rocm-core"
	}
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	plan := w.run(func(o *Options) { o.DryRun = true })
	if !strings.Contains(plan.Message, "leave "+link+" alone (a directory) and make the link "+link+"-nightly") {
		t.Errorf("%s", plan.Message)
	}
	out := w.run()
	if out.Exit != 0 || !out.Changed || out.Linked != link+"-nightly" || !strings.Contains(out.Link, "it belongs to rocm-core") || !slices.Equal(asked, []string{link}) {
		t.Errorf("%+v, asked for %v", out, asked)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if out := w.run(); out.Exit != 0 || out.Link != "" || out.Linked != link || len(asked) != 1 {
		t.Errorf("%+v, asked for %v", out, asked)
	}
}

// ldconfig runs when what it reads has changed, and when another night is active.
func TestWhenLDConfigIsRun(t *testing.T) {
	w := newWorld(t)
	ran := 0
	var fails error
	w.o.Host = Host{
		Kinds: []string{store.HostLDConfig}, Places: store.HostPlaces{Etc: filepath.Join(t.TempDir(), "etc")}, Of: Install{Target: "gfx1151", Channel: "nightly"},
		LDConfig: func(context.Context) error { ran++; return fails },
	}
	report := func(change ...func(*Options)) *Report {
		t.Helper()
		o := w.o
		for _, c := range change {
			c(&o)
		}
		rep, err := Run(context.Background(), o)
		if err != nil || rep.Exit != 0 {
			t.Fatalf("%+v, %v", rep, err)
		}
		return rep
	}
	w.publish("10.2.0a20260929", 2)
	report(func(o *Options) { o.DryRun = true })
	for i, step := range []struct {
		prepare func()
		runs    int
		links   int
	}{
		{func() {}, 1, 1},
		{func() {}, 1, 0},
		{func() { w.publish("10.2.0a20260930", 1) }, 2, 0},
		{func() { w.o.Host.Slot = "gfx1151" }, 2, 0},
		{func() { w.o.Host.Slot, w.o.Host.Kinds = "", nil }, 3, 1},
		{func() { w.o.Host.Kinds, fails = []string{store.HostLDConfig}, errors.New("no room") }, 4, 2},
		{func() { w.o.Host.Slot = "gfx1201" }, 4, 1},
	} {
		step.prepare()
		if rep := report(); ran != step.runs || len(rep.Links) != step.links {
			t.Errorf("step %d: ran %d times, %+v", i, ran, rep.Links)
		}
	}
	links, err := w.o.Store.Links()
	if err != nil || len(links) != 1 || HostKind(links[0]) != store.HostLDConfig {
		t.Errorf("%+v, %v", links, err)
	}
}
