package update

import (
	"errors"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
)

// Where one target's request fails, what became of the others is told all the same.
func TestOneFailedRequestHidesNoOther(t *testing.T) {
	res := &bump.Result{Action: bump.ActionPushed, Pushed: true, Branch: "rocm-nightly/a-gfx1151", Others: []bump.Result{{Action: bump.ActionNone}}}
	got := Options{}.bumped("a", res, errors.New("gfx1100 failed"))
	if len(got) != 3 || !got[0].Pushed || got[0].exit() != ExitOK || got[1].Event != EventUpToDate || got[2].exit() != ExitFailed {
		t.Errorf("%+v", got)
	}
	if got := (Options{}).bumped("a", nil, errors.New("no")); len(got) != 1 || got[0].Event != EventNoResult {
		t.Errorf("%+v", got)
	}
}
