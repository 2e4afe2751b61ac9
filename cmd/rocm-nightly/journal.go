package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// inJournal reports whether what is written to w goes to the journal: systemd names
// the socket that it has connected, DEVICE:INODE, in JOURNAL_STREAM (systemd.exec(5)).
// The variable alone says nothing: it is inherited, also where output is redirected.
func inJournal(w io.Writer, getenv func(string) string) bool {
	stream := getenv("JOURNAL_STREAM")
	if c, ok := w.(*checkedWriter); ok {
		w = c.Writer
	}
	f, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// maxJournalLine is less than what journald takes as one line (LineMax=, 48K): the
// rest of a longer one would be a record of its own, without a priority.
const maxJournalLine = 32 << 10

// journalHandler writes a record as one line that journald reads back: the
// priority of syslog(3) as <N> (sd-daemon(3)), the message, and attributes as
// key=value. journald knows the time; nothing is coloured; what would begin another
// line, or mean something to a terminal, is escaped.
type journalHandler struct {
	out   *journalOut
	attrs slog.Handler // writes attributes alone, to out.line
}

// journalOut is shared by a handler and those made of it.
type journalOut struct {
	mu   sync.Mutex
	w    io.Writer
	line bytes.Buffer
}

func newJournalHandler(w io.Writer, level slog.Leveler) *journalHandler {
	out := &journalOut{w: w}
	attrs := slog.NewTextHandler(&out.line, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}})
	return &journalHandler{out: out, attrs: attrs}
}

// Enabled is part of slog.Handler.
func (h *journalHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attrs.Enabled(ctx, level)
}

// Handle is part of slog.Handler.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	line := &h.out.line
	line.Reset()
	fmt.Fprintf(line, "<%d>%s ", syslogPriority(r.Level), plain.Cut(r.Message, maxJournalLine/2))
	if err := h.attrs.Handle(ctx, r); err != nil {
		return err
	}
	_, err := io.WriteString(h.out.w, plain.Cut(strings.TrimRight(line.String(), " \n"), maxJournalLine)+"\n")
	return err
}

// WithAttrs is part of slog.Handler.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journalHandler{out: h.out, attrs: h.attrs.WithAttrs(attrs)}
}

// WithGroup is part of slog.Handler.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	return &journalHandler{out: h.out, attrs: h.attrs.WithGroup(name)}
}

// syslogPriority is a level in the numbers of syslog(3).
func syslogPriority(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}

// textHandler writes records for people. Messages are made of what servers and
// records say as well, and in colour tint lets escape sequences pass: both are
// escaped here.
func textHandler(w io.Writer, level slog.Leveler, colour bool) slog.Handler {
	return tint.NewTextHandler(w, &tint.Options{
		Level: level, NoColor: !colour, TimeFormat: time.TimeOnly,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch v := a.Value.Any().(type) {
			case string:
				if len(groups) == 0 && a.Key == slog.MessageKey {
					return slog.String(a.Key, plain.Text(v))
				}
				return slog.String(a.Key, withoutEscape(v))
			case error:
				return slog.String(a.Key, withoutEscape(v.Error()))
			default:
				if s := fmt.Sprint(v); a.Value.Kind() == slog.KindAny && strings.Contains(s, "\x1b") {
					return slog.String(a.Key, withoutEscape(s))
				}
				return a
			}
		},
	})
}

// withoutEscape is s with the one byte that tint does not escape in another's
// words, nor if it is written as Go does; as cat -v shows it.
func withoutEscape(s string) string { return strings.ReplaceAll(s, "\x1b", "^[") }
