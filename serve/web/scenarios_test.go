package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// noon is when the States of these tests are.
var noon = time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)

// hostile is what no name, title or error may do anything with.
const hostile = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'`&{{.}}\x1b[2J\u202e\x00"

func scenarios() map[string]*state.State {
	return map[string]*state.State{
		"empty": empty(), "running": running(), "failed": failed(), "stale": stale(),
		"many": many(14), "hostile": nasty(), "quiet": quiet(),
	}
}

func empty() *state.State {
	return &state.State{Schema: state.Schema, Time: noon, Host: "buildbox", Root: "/var/lib/rocm-nightly",
		Program: state.Program{Version: "0.9.0", Commit: "0123456789ab", Go: "go1.26", Started: noon.Add(-time.Minute)},
		Alarms:  []state.Alarm{}, Jobs: []state.Job{}, Slots: []state.Slot{}, Indexes: []state.Index{}, Bumps: []state.Bump{},
		Disk: state.Disk{Used: -1}}
}

// quiet is a machine with two slots on which all is well.
func quiet() *state.State {
	s := empty()
	s.Program.Started, s.Program.Loaded = noon.Add(-72*time.Hour), noon.Add(-72*time.Hour)
	s.Slots = []state.Slot{slotOf("nightly-gfx1151", 12), slotOf("nightly-gfx110X-all", 5)}
	s.Jobs = []state.Job{
		{Name: "update", Kind: "update", Schedule: "CRON_TZ=UTC 30 6 * * *", Slots: []string{"nightly-gfx1151", "nightly-gfx110X-all"}, Next: noon.Add(18*time.Hour + 30*time.Minute), NextWhy: "scheduled",
			WindowEnds: noon.Add(24 * time.Hour), Last: noon.Add(-330 * time.Minute), LastSeconds: 271, LastSuccess: noon.Add(-325 * time.Minute), Runs: 412, Failed: 3, Retries: 2},
		{Name: "check", Kind: "check", Schedule: "CRON_TZ=UTC 12 * * * *", Slots: []string{"nightly-gfx1151"}, Next: noon.Add(12 * time.Minute), NextWhy: "scheduled", Last: noon.Add(-48 * time.Minute), LastSeconds: 1.4, LastSuccess: noon.Add(-48 * time.Minute), Runs: 9000},
	}
	s.Indexes = []state.Index{
		{Channel: "nightly", URL: "https://nightly.repo.amd.com/rocm/core/tarball/", Checked: noon.Add(-48 * time.Minute), Newest: noon.Add(-9 * time.Hour)},
		{Channel: "nightly", URL: "https://rocm.nightlies.amd.com/tarball-multi-arch/", Checked: noon.Add(-48 * time.Minute), Newest: noon.Add(-10 * time.Hour)},
	}
	s.Bumps = []state.Bump{
		{Name: "rocm-flake", State: "open", Version: "10.2.0a20260930", Number: 318, URL: "https://github.com/me/rocm-flake/pull/318", Title: "rocm: 10.2.0a20260929 to 10.2.0a20260930", At: noon.Add(-5 * time.Hour)},
		{Name: "aur", State: "pushed", Version: "10.2.0a20260930", Message: "PKGBUILD and .SRCINFO", At: noon.Add(-5 * time.Hour)},
	}
	s.Disk = state.Disk{Used: 71 << 30, Tarballs: 9 << 30, Spool: 0, Free: 301 << 30, Total: 465 << 30, Measured: noon.Add(-5 * time.Hour)}
	return s
}

func slotOf(name string, nights int) state.Slot {
	channel, target, _ := strings.Cut(name, "-")
	s := state.Slot{Slot: name, Channel: channel, Target: target, Configured: true, Prefix: "/var/lib/rocm-nightly/slots/" + name + "/current",
		Expires: "2027-01-28", LastSuccess: noon.Add(-325 * time.Minute), Generations: []state.Generation{}, Runs: []state.Run{}, History: []state.Activation{}}
	for i := range nights {
		night := noon.Add(-time.Duration(i) * 24 * time.Hour)
		version := "10.2.0a" + night.Format("20060102")
		took := 180 + float64((i*7919)%160)
		s.Runs = append(s.Runs, state.Run{Name: version, Version: version, Started: night.Add(-330 * time.Minute), Finished: night.Add(-325 * time.Minute), Seconds: took, Bytes: int64(3.4e9) + int64(i)*7e6, Generation: version,
			Audit: &state.Audit{Warnings: 4}, Stages: []state.Stage{{Stage: "list", Seconds: 1.2}, {Stage: "download", Seconds: took * .55}, {Stage: "unpack", Seconds: took * .2}, {Stage: "patch", Seconds: took * .08}, {Stage: "audit", Seconds: took * .1}, {Stage: "activate", Seconds: .4}}})
		if i < 4 {
			s.Generations = append(s.Generations, state.Generation{Name: version, Version: version, Active: i == 0, Published: night.Add(-9 * time.Hour), Installed: night.Add(-325 * time.Minute), Digest: "sha256:" + strings.Repeat("ab", 32), Bytes: 21 << 30, Disk: 19 << 30, Alone: int64(i+2) << 30, Audit: &state.Audit{Warnings: 4}})
			s.History = append(s.History, state.Activation{At: night.Add(-325 * time.Minute), Generation: version, Why: "update"})
		}
	}
	s.Active, s.Back = &s.Generations[0], s.Generations[1].Name
	s.Newest = &state.Newest{Version: s.Active.Version, Published: s.Active.Published, Size: 3.4e9, State: "installed"}
	return s
}

func running() *state.State {
	s := quiet()
	s.Program.Actions = true
	s.Running = &state.Running{Job: "update", Why: "scheduled", Started: noon.Add(-94 * time.Second), Slot: "nightly-gfx1151", Stage: "download", Done: 1_400_000_000, Total: 3_400_000_000, Message: "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"}
	sl := s.Slots[0]
	sl.Hold = &state.Hold{Since: noon.Add(-30 * time.Hour), Until: noon.Add(40 * time.Hour), Reason: "benchmarks until Friday"}
	s.Slots = []state.Slot{sl, s.Slots[1]}
	return s
}

func failed() *state.State {
	s := quiet()
	sl := s.Slots[0]
	sl.Newest = &state.Newest{Version: "10.2.0a20261001", Published: noon.Add(-2 * time.Hour), Size: 3.4e9, State: "newer"}
	sl.Runs = append([]state.Run{
		{Name: "10.2.0a20261001-2", Version: "10.2.0a20261001", Started: noon.Add(-50 * time.Minute), Finished: noon.Add(-48 * time.Minute), Seconds: 131, Bytes: 3.4e9, Exit: 4, Audit: &state.Audit{Fatal: 2, Required: 5, Warnings: 11}, Stages: []state.Stage{{Stage: "download", Seconds: 90}, {Stage: "unpack", Seconds: 25}, {Stage: "audit", Seconds: 16}},
			Error: "the audit refused it: 2 fatal findings that the active generation does not have\nlib/libamdhip64.so.7: needs libhsa-runtime64.so.2, which is nowhere"},
		{Name: "10.2.0a20261001", Version: "10.2.0a20261001", Started: noon.Add(-70 * time.Minute), Seconds: 0, Stages: []state.Stage{}},
	}, sl.Runs...)
	s.Slots = []state.Slot{sl, s.Slots[1]}
	s.Jobs = append([]state.Job{}, s.Jobs...)
	s.Jobs[0].Failures, s.Jobs[0].Error, s.Jobs[0].Exit, s.Jobs[0].NextWhy = 3, "the run ended with exit code 4", 4, "retry"
	s.Alarms = []state.Alarm{
		{Kind: "refused", Level: state.Critical, Slot: "nightly-gfx1151", Since: noon.Add(-48 * time.Minute), Text: "the audit refused 10.2.0a20261001: 2 fatal findings", Help: "rocm-nightly status gfx1151 --history"},
		{Kind: "bump-failed", Level: state.Warning, Subject: "rocm-flake", Since: noon.Add(-5 * time.Hour), Text: "the pull request could not be opened: the token may not write", Help: "rocm-nightly bump --dry-run"},
	}
	s.Bumps = []state.Bump{{Name: "rocm-flake", State: "failed", Error: "create the branch: 403 Resource not accessible by personal access token", At: noon.Add(-5 * time.Hour)}}
	s.Program.Config = "serve.listen: others reach 0.0.0.0:7151, and there is no TLS"
	return s
}

func stale() *state.State {
	s := quiet()
	old := noon.Add(-6 * 24 * time.Hour)
	sl := s.Slots[0]
	sl.Newest = &state.Newest{Version: "10.2.0a20260925", Published: old, State: "settling", Until: noon.Add(time.Hour)}
	sl.Waits = "the newest is still settling: it changed 40 min ago"
	sl.Stale = "nothing newer than 96h0m0s"
	s.Jobs = append([]state.Job{}, s.Jobs...)
	s.Jobs[0].Missed, s.Jobs[0].Waits, s.Jobs[0].NextWhy = noon.Add(-30*time.Hour), "no mains power", "catch-up"
	s.Slots = []state.Slot{sl}
	s.Indexes = []state.Index{{Channel: "nightly", URL: "https://nightly.repo.amd.com/rocm/core/tarball/", Checked: noon.Add(-2 * time.Hour), Newest: old, Stale: true, Detail: "nothing newer than 96h0m0s", Error: "read the index: 503 Service Unavailable"}}
	s.Alarms = []state.Alarm{{Kind: "stale", Level: state.Warning, Slot: sl.Slot, Subject: "https://nightly.repo.amd.com/rocm/core/tarball/", Since: old, Text: "the newest nightly is 6 days old", Help: "rocm-nightly list"}}
	return s
}

func many(n int) *state.State {
	s := quiet()
	s.Slots = nil
	for i := range n {
		sl := slotOf(fmt.Sprintf("nightly-gfx%d", 900+i*17), 3+i%4)
		switch i % 5 {
		case 1:
			sl.Newest = &state.Newest{Version: "10.2.0a20261001", Published: noon, Size: 3e9, State: "newer"}
		case 2:
			sl.Active, sl.Generations, sl.History, sl.Runs, sl.Newest = nil, []state.Generation{}, []state.Activation{}, []state.Run{}, nil
		case 3:
			sl.Newest.State, sl.Newest.Until = "uploading", noon.Add(time.Hour)
		}
		s.Slots = append(s.Slots, sl)
	}
	return s
}

// nasty is a State of which every text is hostile.
func nasty() *state.State {
	s, evil := failed(), hostile+strings.Repeat("A", 5000)
	js := "javascript:window.pwned=1"
	s.Host, s.Root = evil, evil
	s.Program = state.Program{Version: evil, Commit: evil, Go: evil, Started: noon, Config: strings.Repeat(hostile+"\n", 100)}
	s.Running = &state.Running{Job: evil, Why: evil, Started: noon, Slot: evil, Stage: evil, Done: -5, Total: 1, Message: evil}
	s.Alarms = []state.Alarm{{Kind: evil, Level: evil, Slot: evil, Subject: evil, Text: evil, Help: evil}}
	for range 150 {
		s.Alarms = append(s.Alarms, state.Alarm{Kind: "x", Level: state.Warning, Text: "one of many"})
	}
	s.Jobs = []state.Job{{Name: evil, Kind: evil, Schedule: evil, Slots: []string{evil}, Next: noon, NextWhy: evil, Error: evil, Waits: evil, Failures: 1 << 30, LastSeconds: 1e300}}
	sl := slotOf("nightly-gfx1151", 2)
	sl.Slot, sl.Channel, sl.Waits, sl.Error, sl.Expires, sl.Prefix = evil, "nightly", evil, strings.Repeat(evil+"\n", 50), evil, evil
	sl.Stale, sl.Back, sl.Left = evil, evil, evil
	sl.Hold = &state.Hold{Reason: evil}
	sl.Newest = &state.Newest{Version: evil, State: evil, Size: -1}
	sl.Runs = []state.Run{{Name: evil, Version: evil, Error: evil, Exit: -1, Seconds: 1e308, Bytes: -1, Stages: []state.Stage{{Stage: evil, Seconds: -1e308}, {Stage: evil, Seconds: 1e308}}}}
	sl.Generations = []state.Generation{{Name: evil, Version: evil, Active: true, Disk: -1, Alone: -1}, {Name: "../../etc/passwd", Disk: 1 << 62}}
	sl.History = []state.Activation{{At: noon, Generation: evil, Why: evil}}
	s.Slots = []state.Slot{sl}
	s.Indexes = []state.Index{{Channel: evil, URL: js, Detail: evil, Error: evil}, {Channel: "nightly", URL: "https://user:secret@example.net/", Newest: time.Unix(1<<40, 0)}}
	s.Bumps = []state.Bump{{Name: evil, State: evil, URL: js, Title: evil, Number: 7, Message: evil, Error: evil}, {Name: "b", URL: "data:text/html,<script>window.pwned=1</script>", Title: "x"}}
	s.Disk = state.Disk{Used: 1 << 62, Tarballs: 1 << 62, Free: -1, Total: 1}
	return s
}
