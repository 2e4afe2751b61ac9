package metrics

import (
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// slot tells of one slot.
func (t *teller) slot(s state.Slot) {
	active, newest := "", ""
	if s.Active != nil {
		active = s.Active.Version
	}
	if s.Newest != nil {
		newest = s.Newest.Version
	}
	t.put("slot_info", 1, s.Slot, s.Channel, s.Target, active, newest)
	t.yes("slot_configured", s.Configured, s.Slot)
	t.yes("slot_readable", s.Readable(), s.Slot)
	t.when("slot_last_success_timestamp_seconds", s.LastSuccess, s.Slot)
	t.held(s)
	if day, err := time.Parse(time.DateOnly, s.Expires); err == nil {
		t.when("slot_expires_timestamp_seconds", day, s.Slot)
	}
	t.runs(s)
	t.active(s.Slot, s.Active)
	t.newest(s.Slot, s.Newest)
	t.generations(s)
}

func (t *teller) held(s state.Slot) {
	t.yes("slot_held", s.Hold != nil, s.Slot)
	if s.Hold != nil {
		t.when("slot_held_since_timestamp_seconds", s.Hold.Since, s.Slot)
	}
}

// runs tells of the last run on record.
func (t *teller) runs(s state.Slot) {
	t.put("slot_consecutive_failures", float64(state.FailedNights(s)), s.Slot)
	for _, r := range s.Runs {
		if r.Bytes > 0 {
			t.size("slot_last_tarball_bytes", r.Bytes, s.Slot)
			break
		}
	}
	if len(s.Runs) == 0 {
		return
	}
	last := s.Runs[0]
	t.when("slot_last_run_timestamp_seconds", last.Finished, s.Slot)
	t.put("slot_last_run_duration_seconds", last.Seconds, s.Slot)
	t.put("slot_last_run_exit_code", float64(last.Exit), s.Slot)
	// A stage that was left and taken up again is there twice: what it took is
	// both.
	var order []string
	took := map[string]float64{}
	for _, st := range atMost(last.Stages, maxStages) {
		if _, again := took[st.Stage]; !again {
			order = append(order, st.Stage)
		}
		took[st.Stage] += st.Seconds
	}
	for _, stage := range order {
		t.put("slot_last_run_stage_seconds", took[stage], s.Slot, stage)
	}
}

func (t *teller) active(slot string, g *state.Generation) {
	if g == nil {
		return
	}
	t.when("slot_installed_published_timestamp_seconds", g.Published, slot)
	t.when("slot_installed_timestamp_seconds", g.Installed, slot)
	if g.Audit != nil {
		t.put("slot_audit_findings", float64(g.Audit.Fatal), slot, "fatal")
		t.put("slot_audit_findings", float64(g.Audit.Required), slot, "required")
		t.put("slot_audit_findings", float64(g.Audit.Warnings), slot, "warning")
	}
}

func (t *teller) newest(slot string, n *state.Newest) {
	if n == nil {
		return // nobody has looked
	}
	t.when("slot_newest_published_timestamp_seconds", n.Published, slot)
	if n.Size > 0 {
		t.size("slot_newest_size_bytes", n.Size, slot)
	}
	t.one("slot_newest_state", slot, n.State, newestStates)
	t.yes("slot_newer_available", n.State != "installed" && n.State != "older", slot)
}

// generations counts them, in two classes: what is active and what is kept.
func (t *teller) generations(s state.Slot) {
	t.put("slot_generations", float64(len(s.Generations)), s.Slot)
	disk := map[string]int64{"active": 0, "kept": 0}
	alone := map[string]int64{"active": 0, "kept": 0}
	for _, g := range s.Generations {
		class := "kept"
		if g.Active {
			class = "active"
		}
		add(disk, class, g.Disk)
		add(alone, class, g.Alone)
	}
	for _, class := range []string{"active", "kept"} {
		t.size("slot_disk_bytes", disk[class], s.Slot, class)
		t.size("slot_disk_unshared_bytes", alone[class], s.Slot, class)
	}
}

// add adds what was measured; what was not makes the sum one that is not known.
func add(sum map[string]int64, class string, n int64) {
	if n < 0 || sum[class] < 0 {
		sum[class] = -1
		return
	}
	sum[class] += n
}
