package main

import "testing"

// TestEveryVerbIsThereOnce: cobra takes a verb twice without a word, and lists it so.
func TestEveryVerbIsThereOnce(t *testing.T) {
	there := map[string]bool{}
	for _, c := range (&app{}).command().Commands() {
		if there[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		there[c.Name()] = true
	}
	if len(there) < 20 {
		t.Errorf("only %d verbs", len(there))
	}
}
