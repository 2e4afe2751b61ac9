package store

import (
	"os"
	"slices"
	"testing"
)

// What a dead process has not written down stands where it was installed, and not
// at the end: prune counts from there.
func TestWhatIsNotOnRecordKeepsItsPlace(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	first, second, third := night(3), night(2), night(1)
	for _, v := range []string{first, second, third} {
		commit(t, sl, v, v)
	}
	want := []string{first, second, third}
	for _, known := range [][]string{{first}, {second}, {third}, {first, third}, {}} {
		st, err := sl.readState()
		if err != nil {
			t.Fatal(err)
		}
		st.Installed = slices.DeleteFunc(st.Installed, func(i Install) bool { return !slices.Contains(known, i.Generation) })
		b, err := st.encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sl.path(stateName), b, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := names(t, sl); !slices.Equal(got, want) {
			t.Errorf("with %q on record: %q, want %q", known, got, want)
		}
		if err := sl.Unhold(t.Context()); err != nil { // which writes it down
			t.Fatal(err)
		}
	}
	// Without any record it is the order of versions.
	if err := os.Remove(sl.path(stateName)); err != nil {
		t.Fatal(err)
	}
	if got := names(t, sl); !slices.Equal(got, []string{third, second, first}) {
		t.Errorf("without a record: %q", got)
	}
}
