package main

import (
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve/notify"
)

// The config takes the kinds of events that are told.
func TestConfigKnowsTheKindsOfEvents(t *testing.T) {
	if !slices.Equal(config.NotifyKinds(), notify.Kinds()) {
		t.Errorf("%q and %q", config.NotifyKinds(), notify.Kinds())
	}
}
