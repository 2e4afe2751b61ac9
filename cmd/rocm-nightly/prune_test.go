package main

import (
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// TestKeptTextSaysWhy: no reason falls through to another one's words.
func TestKeptTextSaysWhy(t *testing.T) {
	for why, want := range map[string]string{
		store.KeptActive:   "active",
		store.KeptPrevious: "way back",
		store.KeptGood:     "known good",
		store.KeptHeld:     "held",
		store.KeptWaiting:  "waits",
		store.KeptInUse:    "used by make 7 (cwd)",
		store.KeptUnseen:   "cannot be seen",
	} {
		k := store.Kept{Why: why, Uses: store.Uses{By: []store.Use{{PID: 7, Program: "make", How: store.UseCwd}}}}
		if got := keptText(k); !strings.Contains(got, want) {
			t.Errorf("%s: %q", why, got)
		}
	}
}
