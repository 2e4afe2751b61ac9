package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionSaysWhatWasBuilt(t *testing.T) {
	vcs := func(modified string) []debug.BuildSetting {
		return []debug.BuildSetting{{Key: "vcs.revision", Value: "c0ffee"}, {Key: "vcs.time", Value: "2026-09-30T06:30:00Z"}, {Key: "vcs.modified", Value: modified}}
	}
	released := build{Version: "v1.2.3", Commit: "f00d", Date: "2026-09-01T00:00:00Z"}
	for _, tt := range []struct {
		name     string
		main     string
		settings []debug.BuildSetting
		linked   build
		want     string
	}{
		{"a checkout", "v0.1.1-0.20260930063000-c0ffee000000", vcs("false"), build{}, "rocm-nightly v0.1.1-0.20260930063000-c0ffee000000 commit c0ffee of 2026-09-30T06:30:00Z go1.26.1"},
		{"a changed checkout", "v0.1.0+dirty", vcs("true"), build{}, "rocm-nightly v0.1.0+dirty commit c0ffee of 2026-09-30T06:30:00Z go1.26.1"},
		{"a changed checkout that Go has no version of", "(devel)", vcs("true"), build{}, "rocm-nightly dev+dirty commit c0ffee of 2026-09-30T06:30:00Z go1.26.1"},
		{"go install of a version", "v0.3.0", nil, build{}, "rocm-nightly v0.3.0 go1.26.1"},
		{"a release", "(devel)", nil, released, "rocm-nightly v1.2.3 commit f00d of 2026-09-01T00:00:00Z go1.26.1"},
		{"a release in another repository", "v9.9.9+dirty", vcs("true"), released, "rocm-nightly v1.2.3 commit f00d of 2026-09-01T00:00:00Z go1.26.1"},
		{"sources that nothing is known of", "", nil, build{}, "rocm-nightly dev go1.26.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			info := &debug.BuildInfo{GoVersion: "go1.26.1", Main: debug.Module{Version: tt.main}, Settings: tt.settings}
			if got := buildOf(info, tt.linked).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
