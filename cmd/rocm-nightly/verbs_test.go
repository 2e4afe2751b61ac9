package main

import "testing"

// What is registered twice is listed twice in --help.
func TestEveryVerbIsThereOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range (&app{getenv: func(string) string { return "" }}).command().Commands() {
		if seen[c.Name()] {
			t.Errorf("%s is there twice", c.Name())
		}
		seen[c.Name()] = true
	}
}
