package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestJournalLines(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		log  func(*slog.Logger)
		want string
	}{
		{func(l *slog.Logger) { l.Info("installed", "slot", "nightly-gfx1151", "exit", 0) }, "<6>installed slot=nightly-gfx1151 exit=0\n"},
		{func(l *slog.Logger) { l.Error("failed", "error", errors.New("no space left")) }, "<3>failed error=\"no space left\"\n"},
		{func(l *slog.Logger) { l.Warn("alone") }, "<4>alone\n"},
		{func(l *slog.Logger) { l.Debug("in detail", "n", 1) }, "<7>in detail n=1\n"},
		{func(l *slog.Logger) { l.Log(ctx, slog.LevelError+4, "worse") }, "<3>worse\n"},
		{func(l *slog.Logger) { l.With("job", "update").WithGroup("g").Info("m", "a", "b") }, "<6>m job=update g.a=b\n"},
		{func(l *slog.Logger) { l.Info("m", slog.Group("g", "msg", "kept", "time", 1)) }, "<6>m g.msg=kept g.time=1\n"},
		// What others wrote begins no line, and ends none.
		{func(l *slog.Logger) { l.Info("a\n<0>b", "k", "c\n<0>d=e") }, "<6>a\\n<0>b k=\"c\\n<0>d=e\"\n"},
		{func(l *slog.Logger) { l.Info("\x1b[2J\u202e", "k", "\x1b[2J\u202e\x00\xff") }, "<6>\\x1b[2J\\u202e k=\"\\x1b[2J\\u202e\\x00\\xff\"\n"},
		{func(l *slog.Logger) { l.Info("m", "k\n<0>", "v") }, "<6>m \"k\\n<0>\"=v\n"},
		{func(l *slog.Logger) { l.Info("m", "k", []string{"a\n<0>b"}) }, "<6>m k=\"[a\\n<0>b]\"\n"},
	} {
		var out bytes.Buffer
		tt.log(slog.New(newJournalHandler(&out, slog.LevelDebug)))
		if out.String() != tt.want {
			t.Errorf("got  %q\nwant %q", out.String(), tt.want)
		}
	}
}

// A record of any length is one line, of less than journald takes.
func TestJournalLinesAreShort(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newJournalHandler(&out, slog.LevelInfo))
	log.Info(strings.Repeat("é\n", 100_000), "k", strings.Repeat("\x00", 100_000))
	log.Debug("not asked for")
	if got := out.String(); strings.Count(got, "\n") != 1 || len(got) > 48<<10 || !strings.HasSuffix(got, "…\n") || !strings.HasPrefix(got, "<6>é") {
		t.Errorf("%d bytes: %.20q", len(got), got)
	}
}

// journalStream is what systemd would say of f.
func journalStream(t *testing.T, f *os.File) string {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

func TestLogKnowsTheJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tt := range []struct {
		name, stream, format string
		stderr               io.Writer
		want                 string // what a line begins with
	}{
		{"the journal", journalStream(t, f), "text", f, "<6>hello k=v\n"},
		{"the journal, JSON: as it was asked for", journalStream(t, f), "json", f, `{"time":`},
		{"redirected", "1:2", "text", f, ""},
		{"no systemd", "", "text", f, ""},
		{"nonsense", "x", "text", f, ""},
		{"no file", journalStream(t, f), "text", io.Discard, ""},
		{"through what main puts around it", journalStream(t, f), "text", &checkedWriter{Writer: f}, "<6>hello k=v\n"},
	} {
		var out bytes.Buffer
		a := &app{stderr: tt.stderr, logFormat: tt.format, getenv: func(name string) string {
			if name == "JOURNAL_STREAM" {
				return tt.stream
			}
			return ""
		}}
		a.log(&out).Info("hello", "k", "v")
		if got := out.String(); tt.want == "" && !strings.HasSuffix(got, " INF hello k=v\n") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// In colour too, what others wrote means nothing to a terminal.
func TestTextLinesAreOneLine(t *testing.T) {
	for _, colour := range []bool{false, true} {
		var out bytes.Buffer
		slog.New(textHandler(&out, slog.LevelInfo, colour)).Warn("a\n\x1b[2Jb\u202e", "k", "c\n\x1b[2Jd", "error", errors.New("e\x1b]0;f\x07\u009b2J"), "list", []string{"g\n\x1b[2J"})
		got := out.String()
		if strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b[2J") || strings.Contains(got, "\x1b]") || strings.ContainsAny(got, "\x07\u202e\u009b") || !strings.Contains(got, `a\n\x1b[2Jb\u202e`) {
			t.Errorf("colour %v: %q", colour, got)
		}
		if colour != strings.Contains(got, "\x1b[") {
			t.Errorf("colour %v: %q", colour, got)
		}
	}
}
