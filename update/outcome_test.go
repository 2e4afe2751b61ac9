package update

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

func TestTheGravestCodeWins(t *testing.T) {
	mismatch := &release.MismatchError{Want: release.Expectation{Source: ledgerKind}}
	for _, tt := range []struct {
		err  error
		have int
		want int
	}{
		{&UsageError{os.ErrInvalid}, ExitOK, ExitUsage}, {&UsageError{os.ErrInvalid}, ExitFailed, ExitUsage},
		{&UsageError{os.ErrInvalid}, ExitNewBytes, ExitNewBytes}, {&UsageError{os.ErrInvalid}, ExitRefused, ExitRefused},
		{fmt.Errorf("x: %w", mismatch), ExitUsage, ExitNewBytes}, {os.ErrClosed, ExitStale, ExitFailed}, {errRefusedBefore, ExitUsage, ExitRefused},
	} {
		if got := gravest(tt.have, exitOf(tt.err)); got != tt.want {
			t.Errorf("%d and %v: %d, want %d", tt.have, tt.err, got, tt.want)
		}
	}
}

// New bytes under the name of a kept generation are not held against another
// night: one that waits because it was left by rollback is not to blame.
func TestNewBytesAreHeldAgainstTheirOwnName(t *testing.T) {
	w := newWorld(t)
	older := w.publish("10.2.0a20260928", 3)
	w.run()
	w.publish("10.2.0a20260929", 2)
	w.run()
	slot := w.o.Store.Slot("nightly", "gfx1151")
	if _, _, err := slot.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.replace(older)
	if out := w.run(later(30 * time.Hour)); out.Exit != ExitNewBytes || !strings.Contains(out.Error, "20260928") {
		t.Fatalf("%+v", out)
	}
	var log bytes.Buffer
	w.run(later(60*time.Hour), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	if strings.Contains(log.String(), "passed over") {
		t.Errorf("%s", &log)
	}
}

// What was verified but could not be kept is not proposed to others.
func TestAFailedInstallHasNoPin(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	out := w.run(func(o *Options) { o.Ledger = store.OpenLedger(filepath.Join(t.TempDir(), "nowhere/ledger.jsonl")) })
	if out.Exit != ExitFailed || out.Verified == nil || out.pin != nil {
		t.Errorf("%+v", out)
	}
}

// Nights that wait for others to vouch do not fill the disk.
func TestWaitingNightsArePruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	trust := filepath.Join(t.TempDir(), "ledger.jsonl")
	if err := os.WriteFile(trust, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	w.o.Installs[0].Keep = 2
	for day := 5; day > 0; day-- {
		w.publish("10.2.0a"+time.Now().AddDate(0, 0, -day).Format("20060102"), day)
		out := w.run(func(o *Options) { o.Verify, o.Quorum, o.Trust = VerifyAgreed, 1, []Place{{URL: trust}} })
		if out.Exit != 0 && out.Exit != ExitStale || out.Changed {
			t.Fatalf("%+v", out)
		}
	}
	if gens, err := w.o.Store.Slot("nightly", "gfx1151").Generations(); err != nil || len(gens) > 2 {
		t.Errorf("%d generations, %v", len(gens), err)
	}
}

// Who accepts new bytes where there are none is told so.
func TestAcceptingTheSameBytesChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	out := w.run(func(o *Options) { o.AcceptNewBytes = true })
	if out.Exit != 0 || out.Changed || out.To != "10.2.0a20260929" || !strings.Contains(out.Message, "the same") ||
		out.Verified == nil || !slices.Contains(out.Verified.Against, ledgerKind) || slices.Contains(out.Verified.Against, "trust on first use") {
		t.Errorf("%+v %+v", out, out.Verified)
	}
}

// An index that cannot be read is in the report, and hides nothing.
func TestUnreadIndexesAreReported(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	empty := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		io.WriteString(rw, "<script>const files = [];</script>")
	}))
	defer empty.Close()
	ch := w.o.Channels["nightly"]
	ch.Indexes = append(fetch.Sources(empty.URL+"/", "file:///nonexistent/"), ch.Indexes...)
	w.o.Channels["nightly"] = ch
	rep, err := Run(context.Background(), w.o)
	if err != nil || rep.Exit != 0 || !rep.Installs[0].Changed || len(rep.Indexes) != 2 {
		t.Fatalf("%+v, %v", rep, err)
	}
	for i, want := range []string{"nothing", "nonexistent"} {
		if ix := rep.Indexes[i]; ix.Channel != "nightly" || !strings.Contains(ix.Error, want) {
			t.Errorf("%+v", ix)
		}
	}
}

// A dry run says that a tarball would be downloaded once.
func TestADryRunKnowsWhatIsShared(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	dry := func(o *Options) { o.DryRun = true }
	rep, _ := w.twins(dry)
	if a, b := rep.Installs[0].Message, rep.Installs[1].Message; !strings.HasPrefix(a, "would download") || strings.Contains(b, "download http") || !strings.Contains(b, "nightly-gfx1030") {
		t.Errorf("%s; %s", a, b)
	}
	w.twins()
	if err := os.RemoveAll(filepath.Join(w.root, "slots/nightly-gfx1036")); err != nil {
		t.Fatal(err)
	}
	if rep, _ = w.twins(dry); !strings.Contains(rep.Installs[1].Message, "of the same tarball") {
		t.Errorf("%s", rep.Installs[1].Message)
	}
}

func TestRedacted(t *testing.T) {
	for raw, want := range map[string]string{
		"https://token@h.example/l": "https://h.example/l", "https://u:p@h.example/l?sig=x": "https://h.example/l", "/srv/l": "/srv/l",
	} {
		if got := redacted(raw); got != want {
			t.Errorf("%s: %s", raw, got)
		}
	}
}
