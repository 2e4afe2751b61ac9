package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// progress shows how far a run has come: a bar for each stage on a terminal, a
// line a stage elsewhere, JSON lines for programs, or nothing. The zero progress
// shows nothing. It is also the writer for logs, so that a line never lands in
// the middle of a bar.
type progress struct {
	kind string // bar, plain, json; "" for nothing
	out  io.Writer
	bars *mpb.Progress
	now  func() time.Time
	also func(update.Event) // is told too; nil: nobody

	mu     sync.Mutex
	bar    map[string]*mpb.Bar // by stage
	pace   map[string]*pace    // by stage
	stage  string
	last   time.Time
	closed bool
}

// pace is how fast a stage goes.
type pace struct {
	total       int64
	began, last time.Time
	from, done  int64 // bytes when it began, and now

	shown atomic.Pointer[string] // what a bar says of it: mpb asks from its own goroutine
}

// move takes the newest count of a stage. A count that falls, or another total,
// is the next install's.
func (p *progress) move(e update.Event) *pace {
	now := p.now()
	if p.pace == nil {
		p.pace = map[string]*pace{}
	}
	c := p.pace[e.Stage]
	if c == nil || c.total != e.Total || e.Done < c.done {
		c = &pace{total: e.Total, began: now, from: e.Done}
		p.pace[e.Stage] = c
	}
	c.done, c.last = e.Done, now
	text := " " + strings.TrimPrefix(c.speed(), ",")
	c.shown.Store(&text)
	return c
}

// rate is in bytes a second, over the whole stage; 0 if it is not known yet.
func (c *pace) rate() float64 {
	if s := c.last.Sub(c.began).Seconds(); s >= 0.2 && c.done > c.from {
		return float64(c.done-c.from) / s
	}
	return 0
}

// left is how long the stage takes from here on; 0 if that is not known.
func (c *pace) left() time.Duration {
	if r := c.rate(); r > 0 && c.total > c.done {
		return time.Duration(float64(c.total-c.done) / r * float64(time.Second)).Round(time.Second)
	}
	return 0
}

// plainEvery is how often a stage that goes on says so on one more line.
const plainEvery = 10 * time.Second

func (a *app) newProgress(w io.Writer) *progress {
	p := &progress{kind: a.progress, out: w, now: time.Now, bar: map[string]*mpb.Bar{}}
	switch {
	case a.quiet || a.progress == "none":
		p.kind = ""
	case a.progress == "auto" && terminal(w):
		p.kind = "bar"
		p.bars = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40))
	case a.progress == "auto":
		p.kind = "plain"
	}
	return p
}

// Write implements io.Writer for logs.
func (p *progress) Write(b []byte) (int, error) {
	if p.bars != nil {
		return p.bars.Write(b)
	}
	return p.out.Write(b)
}

// event shows one event.
func (p *progress) event(e update.Event) {
	if p.also != nil {
		p.also(e)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.kind {
	case "json":
		p.json(e)
	case "plain":
		p.plain(e)
	case "bar":
		p.show(e)
	}
}

func (p *progress) json(e update.Event) {
	var rate int64
	var left float64
	if e.Done > 0 {
		c := p.move(e)
		rate, left = int64(c.rate()), c.left().Seconds()
	}
	line, err := json.Marshal(struct {
		Install string  `json:"install,omitempty"`
		Stage   string  `json:"stage"`
		Done    int64   `json:"done,omitempty"`
		Total   int64   `json:"total,omitempty"`
		Rate    int64   `json:"bytes_per_second,omitempty"`
		Left    float64 `json:"seconds_left,omitempty"`
		Message string  `json:"message,omitempty"`
	}{e.Install, e.Stage, e.Done, e.Total, rate, left, e.Message})
	if err == nil {
		fmt.Fprintf(p.out, "%s\n", line)
	}
}

// plain prints a line when a stage begins, and now and then while it goes on.
// Download and unpack run side by side; the download leads.
func (p *progress) plain(e update.Event) {
	switch {
	case e.Message != "":
		fmt.Fprintln(p.out, printable(e.Message))
	case e.Stage != p.stage && e.Stage != "download":
		fmt.Fprintf(p.out, "%s\n", stageText(e.Stage))
	case e.Total > 0:
		c := p.move(e)
		if p.now().Sub(p.last) <= plainEvery {
			return
		}
		fmt.Fprintln(p.out, c.text())
	default:
		return
	}
	if e.Stage != "download" { // which runs beside the others
		p.stage = e.Stage
	}
	p.last = p.now()
}

// text is a pace for people: 1.2 GiB of 1.8 GiB, 45.2 MiB/s, 14s left.
func (c *pace) text() string {
	return diskspace.Text(c.done) + " of " + diskspace.Text(c.total) + c.speed()
}

func (c *pace) speed() string {
	s := ""
	if r := c.rate(); r > 0 {
		s = ", " + diskspace.Text(int64(r)) + "/s"
	}
	if left := c.left(); left > 0 {
		s += ", " + left.String() + " left"
	}
	return s
}

func stageText(stage string) string {
	switch stage {
	case "unpack":
		return "unpacking"
	case "clone", "reuse":
		return "sharing files"
	case "patch":
		return "patching run paths"
	case "wrap":
		return "writing wrappers and hooks"
	case "audit":
		return "auditing"
	case "smoke":
		return "starting it, as a check"
	case "verify":
		return "comparing"
	case "download":
		return "downloading"
	}
	return stage
}

// show moves the bar of a stage that is measured in bytes, or shows a line for
// one that has no measure.
func (p *progress) show(e update.Event) {
	switch {
	case p.closed:
	case e.Message != "":
		p.Write([]byte(printable(e.Message) + "\n"))
	case e.Done > 0 || e.Total > 0:
		p.barOf(e).SetCurrent(e.Done)
		return
	case e.Stage != p.stage && e.Stage != "download":
		p.Write([]byte(stageText(e.Stage) + "\n"))
	}
	if e.Stage != p.stage && e.Stage != "download" {
		p.abort() // the stages after the unpacking follow each other
	}
	p.stage = e.Stage
}

// barOf returns the bar of a stage: with the time that is left where its total
// is known, else with what is done and how fast.
func (p *progress) barOf(e update.Event) *mpb.Bar {
	before := p.pace[e.Stage]
	c := p.move(e)
	bar := p.bar[e.Stage]
	if bar != nil && before == c {
		return bar
	}
	if bar != nil { // the next install
		bar.Abort(true)
	}
	name := decor.Name(stageText(e.Stage)+" ", decor.WCSyncSpaceR)
	if e.Total > 0 {
		bar = p.bars.AddBar(e.Total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(name, decor.CountersKibiByte("% .1f / % .1f")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *c.shown.Load() })))
	} else {
		bar = p.bars.New(0, mpb.NopStyle(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(name, decor.CurrentKibiByte("% .1f")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *c.shown.Load() })))
	}
	p.bar[e.Stage] = bar
	return bar
}

// abort takes all bars away.
func (p *progress) abort() {
	for stage, bar := range p.bar {
		bar.Abort(true)
		delete(p.bar, stage)
	}
}

// close takes the bars away for good.
func (p *progress) close() {
	p.mu.Lock()
	done := p.closed
	p.closed = true
	p.abort()
	p.mu.Unlock()
	if p.bars != nil && !done {
		p.bars.Wait()
	}
}
