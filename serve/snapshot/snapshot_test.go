package snapshot

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// Example shows what a Taker tells of a store in which nothing is installed yet.
func Example() {
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	st, err := store.Open(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	var t Taker // kept, for the next one
	s, err := t.Take(context.Background(), Options{Store: st, Installs: []Install{{Channel: "nightly", Target: "gfx1151"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sl := range s.Slots {
		fmt.Println(sl.Slot, sl.Configured, sl.Active == nil, len(sl.Generations))
	}
	// Output: nightly-gfx1151 true true 0
}

// Everything of a slot, as it is on disk.
func TestTakeTellsWhatIsThere(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	for n := range 3 {
		install(t, sl, night(n))
		if err := sl.WriteRun(night(n), record1(night(n), 0)); err != nil {
			t.Fatal(err)
		}
	}
	failed := record1(night(3), 1)
	failed.Attempts = []update.Attempt{{Started: now.Add(-time.Hour), Finished: now.Add(-50 * time.Minute), Exit: 1, Error: "no route"}}
	failed.Finished = now.Add(-time.Minute)
	if err := sl.WriteRun(night(3), failed); err != nil {
		t.Fatal(err)
	}
	install(t, st.Slot("stable", "gfx1100"), "10.1.0")
	looked := update.Looked{
		Schema:   1,
		Installs: []update.LookedAt{{Install: "nightly-gfx1151", Newest: night(3), State: update.StateNewer, Success: now.Add(-2 * time.Minute), Published: now.Add(-time.Hour)}},
		Indexes: []update.LookedIndex{
			{Channel: "nightly", URL: "https://new.example/", At: now.Add(-time.Hour), Newest: now.Add(-5 * time.Hour)},
			{Channel: "nightly", URL: "https://old.example/", At: now.Add(-time.Hour), Newest: now.Add(-5000 * time.Hour), Frozen: true},
			{Channel: "nightly", URL: "https://dead.example/", At: now.Add(-200 * time.Hour), Newest: now.Add(-205 * time.Hour), Error: "no such host"},
			{Channel: "rc", URL: "https://rc.example/", At: now},
		},
	}
	if err := write(st, store.LooksFile, looked); err != nil {
		t.Fatal(err)
	}
	if err := write(st, store.BumpsFile, update.KeptBumps{Schema: 1, Bumps: []update.KeptBump{{Name: "flake", State: update.BumpOpen, Number: 7}}}); err != nil {
		t.Fatal(err)
	}
	s, one := take(t, new(Taker), st, func(o *Options) { o.Measure = true })
	if one.Error != "" || one.Active == nil || one.Active.Version != night(2) || len(one.Generations) != 3 || one.Generations[0].Version != night(2) || one.Prefix == "" {
		t.Errorf("%+v", one)
	}
	g := one.Generations[0]
	if g.Bytes != 5<<30 || g.Disk <= 0 || g.Alone < 0 || g.Audit == nil || g.Audit.Required != 2 || g.Published.Format(time.DateOnly) != "2026-09-03" || g.Digest == "" {
		t.Errorf("%+v", g)
	}
	if len(one.Runs) != 5 || one.Runs[0].Error != "the server hung up" || one.Runs[4].Error != "no route" || one.Runs[4].Seconds != 600 || one.Runs[1].Bytes != 2<<30 || len(one.Runs[1].Stages) != 2 {
		t.Errorf("%+v", one.Runs)
	}
	if one.Back != night(1) {
		t.Errorf("a roll back goes to %q", one.Back)
	}
	if len(one.History) != 3 || one.History[0].Generation != night(2) || one.Expires != "2027-01-01" || !one.LastSuccess.Equal(now.Add(-2*time.Minute)) {
		t.Errorf("%+v, %s, %v", one.History, one.Expires, one.LastSuccess)
	}
	if one.Newest == nil || one.Newest.State != update.StateNewer || one.Newest.Version != night(3) {
		t.Errorf("%+v", one.Newest)
	}
	if len(s.Slots) != 2 || s.Slots[1].Slot != "stable-gfx1100" || s.Slots[1].Configured || s.Slots[1].Expires != "" || !one.Configured {
		t.Errorf("%+v", s.Slots)
	}
	if len(s.Indexes) != 3 || s.Indexes[0].Stale || s.Indexes[1].Stale || !s.Indexes[2].Stale || s.Indexes[2].Detail == "" || s.Indexes[2].Error == "" {
		t.Errorf("%+v", s.Indexes)
	}
	if len(s.Bumps) != 1 || s.Bumps[0].Number != 7 || s.Disk.Used <= 0 || s.Disk.Total <= s.Disk.Free || s.Disk.Measured.IsZero() {
		t.Errorf("%+v, %+v", s.Bumps, s.Disk)
	}
	if s, one := take(t, new(Taker), st); s.Disk.Used != -1 || one.Generations[0].Disk != -1 || one.Generations[0].Alone != -1 {
		t.Errorf("not measured: %+v, %+v", s.Disk, one.Generations[0])
	}
}

// Where a roll back came from, and that it is let go on.
func TestWhatWasLeftIsSaid(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	install(t, sl, night(2))
	if _, one := take(t, new(Taker), st); one.Left != "" || one.Back != night(1) {
		t.Errorf("left %q, back %q", one.Left, one.Back)
	}
	if _, _, err := sl.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, one := take(t, new(Taker), st); one.Left != night(2) || one.Back != night(2) {
		t.Errorf("left %q, back %q", one.Left, one.Back)
	}
	if err := sl.Unhold(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, one := take(t, new(Taker), st); one.Left != "" {
		t.Errorf("left %q after it was let go on", one.Left)
	}
}

// What was newest at the last look is judged by what is active now.
func TestNewestIsJudgedByWhatIsActiveNow(t *testing.T) {
	for name, c := range map[string]struct {
		newest, state string
		until         time.Duration
		before        func(sl *store.Slot) error
		want          string
	}{
		"installed since":             {night(2), update.StateNewer, 0, nil, update.StateInstalled},
		"still newer":                 {night(4), update.StateNewer, 0, nil, update.StateNewer},
		"settles still":               {night(4), update.StateSettling, time.Hour, nil, update.StateSettling},
		"has settled":                 {night(4), update.StateSettling, -time.Hour, nil, update.StateNewer},
		"uploading still":             {night(4), update.StateUploading, time.Hour, nil, update.StateUploading},
		"young, and nobody knows":     {night(4), update.StateYoung, 0, nil, update.StateYoung},
		"refused":                     {night(4), update.StateRefused, 0, nil, update.StateRefused},
		"held meanwhile":              {night(4), update.StateNewer, 0, func(sl *store.Slot) error { return sl.Hold(context.Background(), time.Time{}, "") }, update.StateHeld},
		"held, and let go since":      {night(4), update.StateHeld, 0, nil, update.StateNewer},
		"went back from it meanwhile": {night(2), update.StateInstalled, 0, func(sl *store.Slot) error { _, _, err := sl.Rollback(context.Background()); return err }, update.StateHeld},
		"older":                       {night(0), update.StateOlder, 0, nil, update.StateOlder},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			sl := st.Slot("nightly", "gfx1151")
			install(t, sl, night(1))
			install(t, sl, night(2))
			if c.before != nil {
				if err := c.before(sl); err != nil {
					t.Fatal(err)
				}
			}
			at := update.LookedAt{Install: sl.Name(), Newest: c.newest, State: c.state, Active: night(2)}
			if c.until != 0 {
				at.Until = now.Add(c.until)
			}
			if err := write(st, store.LooksFile, update.Looked{Schema: 1, Installs: []update.LookedAt{at}}); err != nil {
				t.Fatal(err)
			}
			if _, one := take(t, new(Taker), st); one.Newest == nil || one.Newest.State != c.want {
				t.Errorf("%+v", one.Newest)
			}
		})
	}
}

// Half a record, one of a newer program, or of something else is told, and hides
// nothing else.
func TestWhatCannotBeReadHidesNothing(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(0))
	install(t, sl, night(1))
	if err := sl.WriteRun(night(1), record1(night(1), 0)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"runs/" + night(2) + ".json": `{"schema": 1, "vers`, "runs/" + night(3) + ".json": `{"schema": 99}`, "runs/" + night(4) + ".json": "",
		"runs/.half.json1": "x", "generations/" + night(0) + "/manifest.json": "{",
	} {
		path := filepath.Join(sl.Dir(), name)
		if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{store.LooksFile, store.BumpsFile} {
		if err := os.WriteFile(filepath.Join(st.Root(), name), []byte(`{"schema": 1, "inst`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, one := take(t, new(Taker), st)
	if len(one.Runs) != 4 || len(one.Generations) != 2 || one.Active == nil || one.Generations[0].Audit == nil {
		t.Errorf("%+v", one)
	}
	told := 0
	for _, r := range one.Runs {
		if strings.Contains(r.Error, "cannot be read") {
			told++
		}
	}
	if told != 3 || !strings.Contains(one.Error, night(0)) || !strings.Contains(one.Error, store.LooksFile) {
		t.Errorf("%d, %s", told, one.Error)
	}
	if len(s.Bumps) != 1 || s.Bumps[0].Error == "" {
		t.Errorf("%+v", s.Bumps)
	}
}

// What is told of a slot is bounded, however long it was in use.
func TestTakeIsBounded(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(0))
	install(t, sl, night(1))
	for range 17 {
		for n := range 2 {
			if _, _, err := sl.Use(t.Context(), night(n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n := range 35 {
		rec := record1(fmt.Sprintf("10.3.0a2026%04d", 1001+n%28+100*(n/28)), 1)
		rec.Error = strings.Repeat("ü", 1<<13)
		if err := sl.WriteRun(rec.Version, rec); err != nil {
			t.Fatal(err)
		}
	}
	_, one := take(t, new(Taker), st)
	if len(one.Runs) != maxRuns || len(one.History) != maxHistory || len(one.Runs[0].Error) > maxError+10 {
		t.Errorf("%d runs, %d switches, an error of %d bytes", len(one.Runs), len(one.History), len(one.Runs[0].Error))
	}
}

// A Taker sees what has changed since, and forgets what is gone.
func TestTakerSeesChanges(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(0))
	var tk Taker
	take(t, &tk, st)
	for exit := range 2 {
		if err := sl.WriteRun(night(0), record1(night(0), exit)); err != nil {
			t.Fatal(err)
		}
		st.Now = func() time.Time { return now.Add(time.Second) }
		if _, one := take(t, &tk, st); len(one.Runs) != 1 || one.Runs[0].Exit != exit {
			t.Errorf("%+v", one.Runs)
		}
	}
	// One that was killed has left its begin; one that is under way has too.
	killed := update.Record{Schema: 1, Version: night(1), Started: now.Add(time.Minute)}
	if err := sl.WriteBegun(killed); err != nil {
		t.Fatal(err)
	}
	if _, one := take(t, &tk, st); len(one.Runs) != 2 || one.Runs[0].Version != night(1) || one.Runs[0].Exit != 1 || !one.Runs[0].Started.Equal(killed.Started) {
		t.Errorf("%+v", one.Runs)
	}
	lock, err := st.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	killed.Started = time.Now().Add(time.Minute)
	if err := sl.WriteBegun(killed); err != nil {
		t.Fatal(err)
	}
	if _, one := take(t, &tk, st); len(one.Runs) != 1 {
		t.Errorf("%+v", one.Runs)
	}
	if err := errors.Join(lock.Release(), os.RemoveAll(sl.Dir())); err != nil {
		t.Fatal(err)
	}
	if _, one := take(t, &tk, st); len(one.Runs)+len(one.Generations) != 0 || len(tk.runs)+len(tk.manifests) != 0 {
		t.Errorf("%+v, %d records, %d manifests", one, len(tk.runs), len(tk.manifests))
	}
}

// A process that writes all that is read is killed at random instants: what it has
// left is whole, each time.
func TestKilledWritersLeaveNothingHalf(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(0))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var tk Taker
	for range 4 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SNAPSHOT_TEST_WRITE="+st.Root())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		timer := time.NewTimer(time.Duration(rng.Int64N(int64(50 * time.Millisecond))))
		for alive := true; alive; {
			select {
			case <-timer.C:
				alive = false
			default:
				take(t, &tk, st) // while it writes, too
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		_, one := take(t, &tk, st)
		if one.Error != "" {
			t.Errorf("%s", one.Error)
		}
		for _, r := range one.Runs {
			if strings.Contains(r.Error, "read") {
				t.Errorf("%+v", r)
			}
		}
	}
}

// A State can be published as it is: no list is null.
func TestNoListIsNull(t *testing.T) {
	s, _ := take(t, new(Taker), open(t))
	b, err := json.Marshal(s)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("%s, %v", b, err)
	}
	var back state.State
	if err := json.Unmarshal(b, &back); err != nil || back.Schema != state.Schema {
		t.Error(err)
	}
}

// BenchmarkTake takes snapshots of 30 records with large audits: with one Taker
// each record is read once.
func BenchmarkTake(b *testing.B) {
	st := open(b)
	sl := st.Slot("nightly", "gfx1151")
	install(b, sl, night(0))
	for n := range 30 {
		if err := sl.WriteRun(night(n), large(night(n), 20_000)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			take(b, new(Taker), st)
		}
	})
	b.Run("next", func(b *testing.B) {
		var tk Taker
		take(b, &tk, st)
		for b.Loop() {
			take(b, &tk, st)
		}
	})
}

// Why the last update failed is told by its record; the slot itself can be read. What
// no record says is told as an error of the slot.
func TestAFailureIsToldOnce(t *testing.T) {
	st := open(t)
	sl := st.Slot("nightly", "gfx1151")
	install(t, sl, night(2))
	failed := record1(night(3), 1)
	if err := sl.WriteRun(night(3), failed); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{failed.Error: "", "nothing serves this GPU": "nothing serves this GPU"} {
		at := update.LookedAt{Install: sl.Name(), Newest: night(3), State: update.StateNewer, Active: night(2), Error: text, Exit: 1}
		if err := write(st, store.LooksFile, update.Looked{Schema: 1, Installs: []update.LookedAt{at}}); err != nil {
			t.Fatal(err)
		}
		if _, one := take(t, new(Taker), st); one.Error != want || len(one.Runs) != 1 || one.Runs[0].Error != failed.Error {
			t.Errorf("%q: %q, %+v", text, one.Error, one.Runs)
		}
	}
}
