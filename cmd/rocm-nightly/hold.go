package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// held is the JSON form of hold and unhold.
type held struct {
	Schema int         `json:"schema"`
	Slot   string      `json:"slot"`
	Hold   *store.Hold `json:"hold"`  // null: it is not held
	Ended  *store.Hold `json:"ended"` // the hold that unhold has ended; null if there was none
}

// maxReason bounds the reason of a hold, in bytes.
const maxReason = 500

func (a *app) holdCmd() *cobra.Command {
	var until, reason string
	c := &cobra.Command{
		Use:   "hold [T]",
		Short: "Keep what is active, while nights are still made ready",
		Long: `Keep what is active in a slot. Nights are still fetched, verified, audited and
staged, but none becomes active until the hold is over: then the newest of them
does at the next run, without a download. What is active is not pruned. rollback,
use, and activate with a version still do what they are told. T is a target or
slot; it may be left out where there is one slot.`,
		Example: "  rocm-nightly hold --until 14d --reason \"paper deadline\"\n  rocm-nightly hold gfx1151 --until 2026-12-01",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "until"); err != nil {
				return err
			}
			var end time.Time
			if until != "" {
				var err error
				if end, err = parseUntil(until, time.Now()); err != nil {
					return usage(fmt.Errorf("hold: --until: %w", err))
				}
			}
			if len(reason) > maxReason || !utf8.ValidString(reason) {
				return usage(fmt.Errorf("hold: --reason has more than %d bytes, or is no text", maxReason))
			}
			return a.holdSlot(args, func(sl *store.Slot) error { return sl.Hold(cmd.Context(), end, reason) })
		},
	}
	c.Flags().StringVar(&until, "until", "", "end by itself at this `date`: 2026-12-01 (as the day begins here), 2026-12-01T12:00 (here), 2026-12-01T12:00:00Z, or after 14d, 36h; without it, at unhold")
	c.Flags().StringVar(&reason, "reason", "", "a `text` for those who wonder")
	a.jsonFlag(c)
	return c
}

func (a *app) unholdCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "unhold [T]",
		Short: "End a hold, and forget what was left by rollback",
		Long: `End the hold of a slot: the next run makes the newest night active that was staged
meanwhile (or now: rocm-nightly activate). What was left by rollback or use may be
installed again, too. T is a target or slot; it may be left out where there is one
slot.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.holdSlot(args, func(sl *store.Slot) error { return sl.Unhold(cmd.Context()) })
		},
	}
	a.jsonFlag(c)
	return c
}

// holdSlot finds the slot, changes its hold and says so.
func (a *app) holdSlot(args []string, do func(*store.Slot) error) error {
	sl, err := a.slot(args)
	if err != nil {
		return err
	}
	was, err := sl.Held()
	if err != nil {
		return err
	}
	if err := do(sl); err != nil {
		return err
	}
	now, err := sl.Held()
	if err != nil {
		return err
	}
	h := held{Schema: 1, Slot: sl.Name(), Hold: now}
	if now == nil {
		h.Ended = was
	}
	switch {
	case a.json:
		a.printJSON(h)
	case now != nil:
		fmt.Fprintf(a.stdout, "%s: %s; to end it: rocm-nightly unhold %s\n", h.Slot, update.HoldText(now, time.Now()), h.Slot)
	case was != nil:
		fmt.Fprintf(a.stdout, "%s: not held any more (it was %s); the next run moves on\n", h.Slot, update.HoldText(was, time.Now()))
	default:
		fmt.Fprintf(a.stdout, "%s: it was not held; what was left by rollback or use may be installed again\n", h.Slot)
	}
	return nil
}

// daysRE is a number of days or weeks, which Go's durations do not have.
var daysRE = regexp.MustCompile(`^([0-9]{1,6})([dw])$`)

// localForms are of days and moments in the time zone that is here.
var localForms = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime}

// lastYear bounds dates: RFC 3339, in which they are written down, has four digits.
const lastYear = 9999

// parseUntil reads when something ends: a day, a moment (RFC 3339), or how long
// it takes from now on.
func parseUntil(text string, now time.Time) (time.Time, error) {
	at, err := parseMoment(text, now)
	if err != nil {
		return time.Time{}, err
	}
	if !at.After(now) {
		return time.Time{}, fmt.Errorf("%s is not in the future (it is %s)", text, now.Format(time.RFC3339))
	}
	if at.UTC().Year() > lastYear {
		return time.Time{}, fmt.Errorf("%s is too far off: leave --until out", text)
	}
	return at, nil
}

func parseMoment(text string, now time.Time) (time.Time, error) {
	if m := daysRE.FindStringSubmatch(text); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return time.Time{}, err
		}
		if m[2] == "w" {
			n *= 7
		}
		return now.AddDate(0, 0, n), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	for _, local := range localForms {
		if at, err := time.ParseInLocation(local, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, errors.New("\"" + text + "\" is neither a day (2026-12-01), nor a moment (2026-12-01T12:00:00Z), nor a time from now on (14d, 36h)")
}
