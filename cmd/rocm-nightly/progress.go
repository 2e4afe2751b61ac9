package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// progress shows how far a run has come: a bar on a terminal, a line a stage
// elsewhere, JSON lines for programs, or nothing. The zero progress shows
// nothing. It is also the writer for logs, so that a line never lands in the
// middle of a bar.
type progress struct {
	kind string // bar, plain, json; "" for nothing
	out  io.Writer
	bars *mpb.Progress

	mu    sync.Mutex
	bar   *mpb.Bar
	total int64 // of bar
	stage string
	last  time.Time
}

// plainEvery is how often a stage that goes on says so on one more line.
const plainEvery = 10 * time.Second

func (a *app) newProgress(w io.Writer) *progress {
	p := &progress{kind: a.progress, out: w}
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
	line, err := json.Marshal(struct {
		Install string `json:"install,omitempty"`
		Stage   string `json:"stage"`
		Done    int64  `json:"done,omitempty"`
		Total   int64  `json:"total,omitempty"`
		Message string `json:"message,omitempty"`
	}{e.Install, e.Stage, e.Done, e.Total, e.Message})
	if err == nil {
		fmt.Fprintf(p.out, "%s\n", line)
	}
}

// plain prints a line when a stage begins, and now and then while it goes on.
// Download and unpack run side by side; the download leads.
func (p *progress) plain(e update.Event) {
	switch {
	case e.Message != "":
		fmt.Fprintln(p.out, e.Message)
	case e.Stage != p.stage && e.Stage != "download":
		fmt.Fprintf(p.out, "%s\n", stageText(e.Stage))
	case time.Since(p.last) > plainEvery && e.Total > 0:
		fmt.Fprintf(p.out, "%s of %s\n", bytesText(e.Done), bytesText(e.Total))
	default:
		return
	}
	if e.Stage != "download" { // which runs beside the others
		p.stage = e.Stage
	}
	p.last = time.Now()
}

func stageText(stage string) string {
	switch stage {
	case "unpack":
		return "unpacking"
	case "patch":
		return "patching run paths"
	case "wrap":
		return "writing wrappers and hooks"
	case "audit":
		return "auditing"
	}
	return stage
}

// show moves the bar of the download, which the unpacking follows, or shows a
// line for a stage that has no measure.
func (p *progress) show(e update.Event) {
	if e.Stage == "download" && e.Total > 0 {
		if p.bar != nil && p.total != e.Total { // the next install
			p.bar.Abort(true)
			p.bar = nil
		}
		if p.bar == nil {
			p.total = e.Total
			p.bar = p.bars.AddBar(e.Total,
				mpb.BarRemoveOnComplete(),
				mpb.PrependDecorators(decor.Name("downloading "), decor.CountersKibiByte("% .1f / % .1f")),
				mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), " % .1f"), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
		}
		p.bar.SetCurrent(e.Done)
		return
	}
	switch {
	case e.Message != "":
		p.Write([]byte(e.Message + "\n"))
	case e.Stage != p.stage && e.Stage != "download":
		p.Write([]byte(stageText(e.Stage) + "\n"))
	}
	p.stage = e.Stage
}

// close takes the bar away.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		p.bar.Abort(true)
		p.bar = nil
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}
