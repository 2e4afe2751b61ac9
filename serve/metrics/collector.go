package metrics

import (
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// What one scrape tells at most: names come from a config, from directories and
// from records, and a machine with more than this has another problem.
const (
	maxSlots   = 256
	maxStages  = 32 // of a run, which has a dozen
	maxIndexes = 64
	maxBumps   = 256
	maxJobs    = 256
	maxLabel   = 100 // bytes of a label
)

// collector makes numbers of the State of the moment, for each scrape anew.
type collector struct {
	state   func() *state.State
	resting bool // no process runs when the numbers are read
	desc    map[string]*prometheus.Desc
	kind    map[string]prometheus.ValueType
	totals  *totals
}

func newCollector(src func() *state.State, resting bool) *collector {
	c := &collector{
		state: src, resting: resting, totals: &totals{seen: map[string]total{}},
		desc: map[string]*prometheus.Desc{}, kind: map[string]prometheus.ValueType{},
	}
	for _, f := range families {
		if resting && f.live {
			continue
		}
		c.desc[f.name] = prometheus.NewDesc(prefix+f.name, f.help, f.labels, nil)
		c.kind[f.name] = prometheus.GaugeValue
		if f.kind == counter {
			c.kind[f.name] = prometheus.CounterValue
		}
	}
	return c
}

// Describe is part of prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		ch <- d
	}
}

// Collect is part of prometheus.Collector. It takes no lock of the State's maker.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.state()
	t := &teller{c: c, ch: ch, told: map[string]bool{}}
	t.program(s)
	t.running(s.Running)
	for _, j := range atMost(s.Jobs, maxJobs) {
		t.job(j)
	}
	for _, sl := range atMost(s.Slots, maxSlots) {
		t.slot(sl)
	}
	for _, ix := range atMost(s.Indexes, maxIndexes) {
		t.index(ix)
	}
	for _, b := range atMost(s.Bumps, maxBumps) {
		t.bump(b)
	}
	t.disk(s.Disk)
}

func atMost[T any](all []T, n int) []T { return all[:min(len(all), n)] }

// teller tells the numbers of one scrape.
type teller struct {
	c    *collector
	ch   chan<- prometheus.Metric
	told map[string]bool
}

// put tells one number. Of two with the same labels the first holds: Prometheus
// takes a scrape with both for a broken one.
func (t *teller) put(name string, value float64, labels ...string) {
	d := t.c.desc[name]
	if d == nil {
		return // not in a textfile
	}
	for i, l := range labels {
		labels[i] = plain.Cut(l, maxLabel)
	}
	key := name + "\x00" + strings.Join(labels, "\x00")
	if t.told[key] {
		return
	}
	t.told[key] = true
	if t.c.kind[name] == prometheus.CounterValue {
		value = t.c.totals.of(key, value)
	}
	m, err := prometheus.NewConstMetric(d, t.c.kind[name], value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	t.ch <- m
}

// when tells a time; one that is not known is absent.
func (t *teller) when(name string, at time.Time, labels ...string) {
	if !at.IsZero() {
		t.put(name, float64(at.UnixMilli())/1000, labels...)
	}
}

// yes tells 1 or 0.
func (t *teller) yes(name string, yes bool, labels ...string) {
	v := 0.0
	if yes {
		v = 1
	}
	t.put(name, v, labels...)
}

// size tells bytes; what was not measured (-1) is absent.
func (t *teller) size(name string, n int64, labels ...string) {
	if n >= 0 {
		t.put(name, float64(n), labels...)
	}
}

// one tells 1 for the state that holds and 0 for the others of known.
func (t *teller) one(name, owner, is string, known []string) {
	if !slices.Contains(known, is) {
		is = known[len(known)-1]
	}
	for _, k := range known {
		t.yes(name, k == is, owner, k)
	}
}

func (t *teller) program(s *state.State) {
	p := s.Program
	t.put("build_info", 1, p.Version, p.Commit, p.Go)
	t.when("state_timestamp_seconds", s.Time)
	t.yes("config_last_reload_successful", p.Config == "")
	t.when("config_last_reload_success_timestamp_seconds", p.Loaded)
	t.yes("stopping", p.Stops)
	t.alarms(s.Alarms)
}

// alarms counts them. Those that there are not are told too: a number that goes
// from 0 to 1 is easier to watch than one that appears.
func (t *teller) alarms(all []state.Alarm) {
	count := map[[2]string]int{}
	for _, a := range all {
		kind, level := a.Kind, a.Level
		if !slices.Contains(state.AlarmKinds(), kind) {
			kind = "other"
		}
		if level != state.Critical {
			level = state.Warning
		}
		count[[2]string{kind, level}]++
	}
	for _, kind := range append(state.AlarmKinds(), "other") {
		for _, level := range []string{state.Critical, state.Warning} {
			t.put("alarms", float64(count[[2]string{kind, level}]), kind, level)
		}
	}
}

func (t *teller) running(r *state.Running) {
	t.yes("running", r != nil)
	if r == nil {
		return
	}
	t.when("running_since_timestamp_seconds", r.Started)
	t.put("running_stage_info", 1, r.Job, r.Slot, r.Stage)
	if r.Total > 0 && r.Done >= 0 {
		t.put("running_stage_progress_ratio", min(1, float64(r.Done)/float64(r.Total)))
	}
}

func (t *teller) job(j state.Job) {
	t.put("job_runs_total", float64(j.Runs-min(j.Failed, j.Runs)), j.Name, "success")
	t.put("job_runs_total", float64(j.Failed), j.Name, "failure")
	t.put("job_retries_total", float64(j.Retries), j.Name)
	t.put("job_consecutive_failures", float64(j.Failures), j.Name)
	t.when("job_last_run_timestamp_seconds", j.Last, j.Name)
	if !j.Last.IsZero() {
		t.put("job_last_run_duration_seconds", j.LastSeconds, j.Name)
		t.put("job_last_run_exit_code", float64(j.Exit), j.Name)
	}
	t.when("job_last_success_timestamp_seconds", j.LastSuccess, j.Name)
	t.when("job_next_run_timestamp_seconds", j.Next, j.Name)
}

func (t *teller) index(ix state.Index) {
	at := address(ix.URL)
	t.yes("index_up", ix.Error == "", ix.Channel, at)
	t.when("index_checked_timestamp_seconds", ix.Checked, ix.Channel, at)
	t.when("index_newest_published_timestamp_seconds", ix.Newest, ix.Channel, at)
	t.yes("index_stale", ix.Stale, ix.Channel, at)
}

// address is host and path of an index: one host may have two of a channel. Who
// is let in, and what may be a secret behind a question mark, is left out.
func address(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "other"
	}
	return u.Host + u.EscapedPath()
}

func (t *teller) bump(b state.Bump) {
	t.one("bump_state", b.Name, b.State, bumpStates)
	t.yes("bump_failed", b.Error != "" || b.State == "failed", b.Name)
	t.when("bump_timestamp_seconds", b.At, b.Name)
}

func (t *teller) disk(d state.Disk) {
	if !d.Measured.IsZero() {
		t.size("disk_generations_bytes", d.Used)
		t.when("disk_measured_timestamp_seconds", d.Measured)
	}
	t.size("disk_tarballs_bytes", d.Tarballs)
	t.size("disk_spool_bytes", d.Spool)
	if d.Total > 0 {
		t.size("disk_free_bytes", d.Free)
		t.size("disk_size_bytes", d.Total)
	}
}

// totals keeps counters from going down: a job that the config has anew begins at
// 0, and its past is added.
type totals struct {
	mu   sync.Mutex
	seen map[string]total
}

type total struct{ before, last float64 }

// maxTotals bounds what is remembered of jobs that the config had once.
const maxTotals = 4 * 3 * maxJobs

// of returns what is to be told of a counter that stands at now.
func (ts *totals) of(key string, now float64) float64 {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	was, known := ts.seen[key]
	if !known && len(ts.seen) >= maxTotals {
		return now
	}
	if now < was.last {
		was.before += was.last
	}
	was.last = now
	ts.seen[key] = was
	return was.before + now
}
