package main

import (
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/unpack"
)

// Each limit of the config is the limit of the same name of package unpack,
// for repack as for each install of update.
func TestLimitsReachUnpack(t *testing.T) {
	cfg := &config.Config{Unpack: config.Unpack{MaxBytes: 1001, MaxEntries: 1002, MaxRatio: 1003}}
	want := unpack.Limits{MaxBytes: 1001, MaxEntries: 1002, MaxRatio: 1003}
	if got := repackOptions(cfg.Repack, cfg.Audit, cfg.Unpack).Limits; got != want {
		t.Errorf("repack: %+v", got)
	}
	if got := updateInstall(cfg, config.Install{}).Repack.Limits; got != want {
		t.Errorf("update: %+v", got)
	}
}
