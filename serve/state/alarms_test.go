package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var alarmNow = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return alarmNow.Add(-d) }

const day = 24 * time.Hour

// well is a State of a machine on which everything is as it should be.
func well() *State {
	active := Generation{Name: "10.3.0a20261121", Version: "10.3.0a20261121", Active: true, Published: ago(30 * time.Hour), Installed: ago(90 * time.Minute), Bytes: 9e9, Disk: 9e9, Alone: 4e9}
	return &State{
		Schema: Schema, Time: alarmNow, Program: Program{Started: ago(60 * day), Loaded: ago(60 * day)},
		Jobs: []Job{
			{Name: "update", Kind: "update", Slots: []string{"nightly-gfx1151"}, Next: alarmNow.Add(22 * time.Hour), NextWhy: "scheduled", Last: ago(2 * time.Hour), LastSuccess: ago(90 * time.Minute), Runs: 60},
			{Name: "check", Kind: "check", Slots: []string{"nightly-gfx1151"}, Next: alarmNow.Add(12 * time.Minute), Last: ago(48 * time.Minute), LastSuccess: ago(47 * time.Minute), Runs: 1440},
		},
		Slots: []Slot{{
			Slot: "nightly-gfx1151", Channel: "nightly", Target: "gfx1151", Configured: true, Active: &active,
			Newest: &Newest{Version: active.Version, Size: 2e9, State: "installed"}, Expires: "2027-03-21", LastSuccess: ago(90 * time.Minute),
			Generations: []Generation{active}, Runs: []Run{{Name: active.Version, Version: active.Version, Finished: ago(90 * time.Minute), Bytes: 2e9}},
		}},
		Indexes: []Index{
			{Channel: "nightly", URL: "https://nightly.repo.amd.com/rocm/core/tarball/", Checked: ago(48 * time.Minute), Newest: ago(30 * time.Hour)},
			// The host of before: it moves no more, and that is no news.
			{Channel: "nightly", URL: "https://rocm.nightlies.amd.com/tarball-multi-arch/", Checked: ago(48 * time.Minute), Newest: ago(90 * day), Stale: true},
		},
		Bumps: []Bump{{Name: "flake", State: "open", At: ago(90 * time.Minute)}},
		Disk:  Disk{Used: 9e9, Free: 100e9, Total: 500e9, Measured: ago(90 * time.Minute)},
	}
}

func TestNothingFiresOnWhatIsEmptyOrWell(t *testing.T) {
	for name, s := range map[string]*State{
		"zero": {}, "fresh": new(Hub).State(), "well": well(),
		"configured, never run": {Slots: []Slot{{Slot: "nightly-gfx1151", Configured: true}}, Jobs: []Job{{Name: "update", Next: alarmNow.Add(time.Hour)}}, Disk: Disk{Used: -1, Free: 1, Total: 2}},
	} {
		if all := Alarms(s, alarmNow); all == nil || len(all) != 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// Each case changes one thing of a machine that is well.
func TestAlarms(t *testing.T) {
	failed := func(exit, n int, success time.Duration) func(*State) {
		return func(s *State) {
			sl := &s.Slots[0]
			sl.LastSuccess, sl.Runs = ago(success), nil
			for i := range n {
				sl.Runs = append(sl.Runs, Run{Version: fmt.Sprintf("10.3.0a202611%02d", 22-i), Finished: ago(time.Hour + time.Duration(i)*day), Exit: exit, Error: "because\nof this"})
			}
		}
	}
	jobFailed := func(why string, n, exit int) func(*State) {
		return func(s *State) {
			j := &s.Jobs[0]
			j.Failures, j.Exit, j.Error, j.NextWhy = n, exit, "no space left", why
			j.WindowEnds, j.LastSuccess = alarmNow.Add(4*time.Hour), ago(26*time.Hour)
		}
	}
	unrecorded := func(exit int) func(*State) {
		return func(s *State) {
			s.Slots[0].Failed = Failure{Exit: exit, At: ago(time.Hour), Error: "because\nof this"}
			s.Slots[0].Error = s.Slots[0].Failed.Error
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*State)
		want   string // level kind slot-or-subject: text; "": nothing
	}{
		{"a night failed", failed(1, 1, 26*time.Hour), "warning failed nightly-gfx1151: nightly-gfx1151: 10.3.0a20261122 could not be installed: because"},
		{"three nights failed", failed(1, 3, 80*time.Hour), "critical failed nightly-gfx1151: "},
		{"one night that failed three times", func(s *State) {
			failed(1, 3, 80*time.Hour)(s)
			for i := range s.Slots[0].Runs {
				s.Slots[0].Runs[i].Version = "10.3.0a20261122"
			}
		}, "warning failed nightly-gfx1151: "},
		{"three records of one bad day", failed(1, 3, 20*time.Hour), "warning failed nightly-gfx1151: "},
		{"a success came after it", failed(1, 1, time.Minute), ""},
		{"a stale index is no failure of the slot", failed(3, 1, 26*time.Hour), ""},
		{"refused", failed(4, 1, 26*time.Hour), "warning refused nightly-gfx1151: nightly-gfx1151: 10.3.0a20261122 was refused: because"},
		{"refused for three nights", failed(4, 3, 80*time.Hour), "critical refused nightly-gfx1151: "},
		{"new bytes are grave at once", failed(5, 1, 26*time.Hour), "critical new-bytes nightly-gfx1151: nightly-gfx1151: 10.3.0a20261122 has other bytes than before"},
		{"a job failed and the window is over", jobFailed("scheduled", 1, 1), "warning failed update: update failed once: no space left"},
		{"a job that will try again", jobFailed("retry", 2, 1), ""},
		{"a job that has tried often", jobFailed("retry", 3, 1), "warning failed update: update failed 3 times in a row"},
		{"a job that refused", jobFailed("scheduled", 1, 4), "warning refused update: "},
		{"a job with new bytes", jobFailed("scheduled", 1, 5), "critical new-bytes update: "},
		{"a look that failed: the next is soon", func(s *State) { s.Jobs[1].Failures, s.Jobs[1].Exit, s.Jobs[1].Error = 2, 1, "no answer" }, ""},
		{"looks that fail for hours", func(s *State) { s.Jobs[1].Failures, s.Jobs[1].Exit, s.Jobs[1].Error = 3, 1, "no answer" }, "warning failed check: check failed 3 times in a row: no answer"},
		{"a job that never did well", func(s *State) { jobFailed("scheduled", 3, 1)(s); s.Jobs[0].LastSuccess = time.Time{} }, "critical failed update: "},
		{"job and slot: the slot tells", func(s *State) { jobFailed("scheduled", 1, 1)(s); failed(1, 1, 26*time.Hour)(s) }, "warning failed nightly-gfx1151: "},
		{"a slot whose job tries again", func(s *State) { jobFailed("retry", 1, 1)(s); failed(1, 1, 26*time.Hour)(s) }, ""},
		{"a retry whose window is over", func(s *State) { jobFailed("retry", 1, 1)(s); s.Jobs[0].WindowEnds = ago(time.Second) }, "warning failed update: "},

		{"missed", func(s *State) { s.Jobs[0].Next = ago(16 * time.Minute) }, "critical missed update: update was to begin at 2026-11-22T07:44:00Z and did not"},
		{"passed without a run", func(s *State) { s.Jobs[0].Missed = ago(time.Hour) }, "warning missed update: the run of update at 2026-11-22T07:00:00Z was missed"},
		{"passed without mains power", func(s *State) { s.Jobs[0].Missed, s.Jobs[0].Waits = ago(time.Hour), "no mains power" }, ""},
		{"without mains power for two days", func(s *State) { s.Jobs[0].Missed, s.Jobs[0].Waits = ago(2*day), "no mains power" }, "warning missed update: the run of update at 2026-11-20T08:00:00Z was missed: no mains power"},
		{"due just now", func(s *State) { s.Jobs[0].Next = ago(time.Minute) }, ""},
		{"due, and another runs", func(s *State) { s.Jobs[0].Next = ago(5 * time.Hour); s.Running = &Running{} }, ""},
		{"due, and another runs for a day", func(s *State) { s.Jobs[0].Next = ago(25 * time.Hour); s.Running = &Running{} }, "critical missed update: "},
		{"due, and told to stop", func(s *State) { s.Jobs[0].Next = ago(time.Hour); s.Program.Stops = true }, ""},

		{"stale", func(s *State) { s.Indexes[0].Stale, s.Indexes[0].Detail = true, "it stands still" }, "warning stale nightly.repo.amd.com/rocm/core/tarball/: nothing new is published in nightly since 2026-11-21: it stands still"},
		{"stale for one slot", func(s *State) { s.Slots[0].Stale = "another target got nights" }, "warning stale nightly-gfx1151: nothing new is published for nightly-gfx1151: another target got nights"},
		{"stale for all, told once", func(s *State) { s.Slots[0].Stale, s.Indexes[0].Stale = "x", true }, "warning stale nightly.repo.amd.com"},
		{"one index is silent for an hour", func(s *State) { s.Indexes[0].Error = "timeout" }, ""},
		{"one index is silent for a day", func(s *State) { s.Indexes[0].Error, s.Indexes[0].Checked = "timeout", ago(25*time.Hour) }, "warning unreachable nightly.repo.amd.com/rocm/core/tarball/: an index of nightly, nightly.repo.amd.com/rocm/core/tarball/, does not answer: timeout"},
		{"one never answered", func(s *State) { s.Indexes[1].Error, s.Indexes[1].Checked = "no such host", time.Time{} }, "warning unreachable rocm.nightlies.amd.com/tarball-multi-arch/: "},
		{"one has not answered yet", func(s *State) {
			s.Program.Started, s.Indexes[1].Error, s.Indexes[1].Checked = ago(time.Hour), "no such host", time.Time{}
		}, ""},

		{"a bump failed", func(s *State) { s.Bumps[0].Error = "401" }, "warning bump-failed flake: nothing could be proposed to flake: 401"},
		{"a bump failed, without an error", func(s *State) { s.Bumps[0].State, s.Bumps[0].Message = "failed", "checks" }, "warning bump-failed flake: nothing could be proposed to flake: checks"},
		{"a bad config", func(s *State) { s.Program.Config = "config.yaml:3:1: unknown key\nmore" }, "warning config : the config was changed and could not be taken, the one of before is in use: config.yaml:3:1: unknown key"},

		{"little room", func(s *State) { s.Disk.Free = 13e9 }, "warning disk : 13.0 GB is free, and the next night takes about 9.0 GB"},
		{"too little room", func(s *State) { s.Disk.Free = 8e9 }, "critical disk : 8.0 GB is free"},
		{"little room for a larger night", func(s *State) { s.Slots[0].Newest.Size = 20e9 }, "warning disk : 100.0 GB is free, and the next night takes about 90.0 GB"},
		{"little room for a first night", func(s *State) { s.Slots[0].Active, s.Slots[0].Runs, s.Disk.Free = nil, nil, 11e9 }, "warning disk : 11.0 GB is free, and the next night takes about 10.0 GB"},
		{"little room, and the config wants no night", func(s *State) { s.Slots[0].Configured, s.Disk.Free = false, 1 }, ""},
		{"not measured", func(s *State) { s.Disk.Used = -1 }, "warning disk : what the generations occupy could not be measured"},

		{"soon deleted", func(s *State) { s.Slots[0].Expires = "2026-12-01" }, "warning expires nightly-gfx1151: AMD deletes 10.3.0a20261121, which is active in nightly-gfx1151, on 2026-12-01"},
		{"deleted", func(s *State) { s.Slots[0].Expires = "2026-11-20" }, "warning expires nightly-gfx1151: AMD has deleted 10.3.0a20261121"},
		{"deleted long ago", func(s *State) { s.Slots[0].Expires = "2026-10-20" }, ""},
		{"no day", func(s *State) { s.Slots[0].Expires = "soon" }, ""},
		{"held for long", func(s *State) { s.Slots[0].Hold = &Hold{Since: ago(15 * day), Reason: "a demo"} }, "warning held nightly-gfx1151: nightly-gfx1151 is held since 2026-11-07: a demo"},
		{"held", func(s *State) { s.Slots[0].Hold = &Hold{Since: ago(13 * day)} }, ""},
		{"held since the unknown", func(s *State) { s.Slots[0].Hold = &Hold{} }, ""},
		{"a slot that cannot be read", func(s *State) { s.Slots[0].Error = "state.json: EOF" }, "warning unreadable nightly-gfx1151: something of nightly-gfx1151 cannot be read: state.json: EOF"},
		{"new bytes, before there was a record", unrecorded(5), "critical new-bytes nightly-gfx1151: nightly-gfx1151: 10.3.0a20261121 has other bytes than before under its name; they are not taken: because"},
		{"refused, before there was a record", unrecorded(4), "warning refused nightly-gfx1151: nightly-gfx1151: 10.3.0a20261121 was refused: because"},
		{"failed, before there was a record", unrecorded(1), "warning failed nightly-gfx1151: nightly-gfx1151: 10.3.0a20261121 could not be installed: because"},
		{"failed, before there was a record, and its job tries again", func(s *State) { jobFailed("retry", 1, 1)(s); unrecorded(1)(s) }, ""},
		{"nobody knows what would be installed", func(s *State) { unrecorded(1)(s); s.Slots[0].Newest = nil }, "warning failed nightly-gfx1151: nightly-gfx1151: a night could not be installed: because"},
		{"a night failed, and a look that failed does not mend it", func(s *State) { failed(1, 1, 26*time.Hour)(s); s.Jobs[1].Failures, s.Jobs[1].Exit = 1, 1 }, "warning failed nightly-gfx1151: "},
		{"records of the future", func(s *State) { s.Slots[0].Runs[0].Finished = alarmNow.Add(time.Hour) }, "warning clock : a record is of 2026-11-22T09:00:00Z"},
		{"clocks that nearly agree", func(s *State) { s.Indexes[0].Checked = alarmNow.Add(time.Minute) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := well()
			tt.change(s)
			got := ""
			for _, a := range Alarms(s, alarmNow) {
				got += fmt.Sprintf("%s %s %s%s: %s\n", a.Level, a.Kind, a.Slot, a.Subject, a.Text)
				if a.Help == "" || !slices.Contains(AlarmKinds(), a.Kind) {
					t.Errorf("%+v", a)
				}
			}
			if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) || strings.Count(got, "\n") > 1 {
				t.Errorf("got  %swant %s", got, tt.want)
			}
		})
	}
}

// A night that runs pass over is told of although they succeed.
func TestANightThatIsPassedOver(t *testing.T) {
	s := well()
	sl := &s.Slots[0]
	sl.Newest = &Newest{Version: "10.3.0a20261122", State: "refused"}
	sl.LastSuccess = ago(time.Minute)
	sl.Runs = append([]Run{{Version: "10.3.0a20261122", Finished: ago(time.Hour), Exit: 1, Error: "cut off"}}, sl.Runs...)
	all := Alarms(s, alarmNow)
	if len(all) != 1 || all[0].Kind != "refused" || all[0].Level != Warning || !strings.Contains(all[0].Text, "10.3.0a20261122") || !strings.Contains(all[0].Text, "cut off") || !all[0].Since.Equal(ago(time.Hour)) {
		t.Errorf("%+v", all)
	}
}

func TestTheGravestIsFirst(t *testing.T) {
	s := well()
	s.Slots[0].Hold = &Hold{Since: ago(15 * day)}
	s.Program.Config = "bad"
	s.Jobs[0].Next = ago(time.Hour)
	s.Disk.Free = 1
	s.Slots[0].Runs[0] = Run{Version: "10.3.0a20261122", Finished: ago(time.Minute), Exit: 5}
	for i := range s.Indexes {
		s.Indexes[i].Error, s.Indexes[i].Checked = "timeout", ago(2*day)
	}
	var got []string
	for _, a := range Alarms(s, alarmNow) {
		got = append(got, a.Level+" "+a.Kind)
	}
	want := []string{"critical new-bytes", "critical missed", "critical disk", "critical unreachable", "critical unreachable", "warning config", "warning held"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// What is told is made of what servers, forges and records say.
func TestAlarmsOfHostileWords(t *testing.T) {
	evil := "\x1b[2J\u202e$(reboot)\n<b>" + strings.Repeat("x", 5000)
	s := well()
	s.Slots[0].Slot, s.Slots[0].Target, s.Slots[0].Error = evil, evil, evil
	s.Slots[0].Hold = &Hold{Since: ago(15 * day), Reason: evil}
	s.Slots[0].Runs[0] = Run{Version: evil, Finished: ago(time.Minute), Exit: 5, Error: evil}
	s.Jobs[0].Name, s.Jobs[0].Next, s.Jobs[0].Slots = evil, ago(time.Hour), nil
	s.Bumps[0] = Bump{Name: evil, Error: evil}
	s.Program.Config = evil
	s.Indexes = []Index{{Channel: evil, URL: "https://u:secret@h/p?token=secret#" + evil, Error: evil, Stale: true, Detail: evil}, {Channel: "x", URL: "https://u:secret@h/p?token=secret", Error: "e", Stale: true}}
	all := Alarms(s, alarmNow)
	if len(all) < 9 {
		t.Errorf("%d alarms", len(all))
	}
	for _, a := range all {
		if strings.ContainsAny(a.Text, "\x1b\n\u202e") || len(a.Text) > 4*textMost || strings.ContainsAny(a.Help, "$(\x1b\n<") || strings.Contains(a.Text+a.Help+a.Subject, "secret") && a.Kind != "" {
			t.Errorf("%q, %q, %.50q", a.Text, a.Help, a.Subject)
		}
	}
}

// The two words that everything else reads.
func ExampleAlarms() {
	s := &State{Bumps: []Bump{{Name: "flake", State: "failed", Error: "the token is not valid any more"}}}
	for _, a := range Alarms(s, time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)) {
		fmt.Printf("%s: %s\n  try: %s\n", a.Level, a.Text, a.Help)
	}
	// Output:
	// warning: nothing could be proposed to flake: the token is not valid any more
	//   try: rocm-nightly bump --dry-run
}
