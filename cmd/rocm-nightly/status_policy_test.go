package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// Of what programs before kinds refused, only new bytes are in the way still: the
// rest is tried again, and must not be said not to be.
func TestRefusalsOfOlderProgramsAreNotSaidToHold(t *testing.T) {
	b, err := os.ReadFile("../../store/testdata/schema1/state.json")
	if err != nil {
		t.Fatal(err)
	}
	var st store.State
	if err := json.Unmarshal(b, &st); err != nil || len(st.Refused) != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	const name = "therock-dist-linux-gfx1151-10.2.0a20261119.tar.gz 1795064400 {host regression []} fhs rpath []"
	st.Refused["smoke quick: "+name] = store.Refusal{Reason: "x"}
	st.Refused["new bytes: "+name] = store.Refusal{Reason: "y"}
	var p policyStatus
	p.refused(&st, nil)
	if len(p.Refused) != 1 || p.Refused[0].Kind != "new bytes" || p.Refused[0].Version != "10.2.0a20261119" || p.Refused[0].Reason != "y" {
		t.Errorf("%+v", p.Refused)
	}
}
