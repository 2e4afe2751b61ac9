package feed

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// Every field that a feed has is told of in docs/feed.md.
func TestEveryFieldIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/feed.md")
	if err != nil {
		t.Fatal(err)
	}
	e := night(1)
	e.Withdrawn, e.Changelog = true, "https://rocm.example/log"
	var fields map[string]any
	if err := json.Unmarshal([]byte(encoded(t, Feed{Entries: []Entry{e, night(2)}})), &fields); err != nil {
		t.Fatal(err)
	}
	for name, v := range fields {
		if !strings.Contains(string(doc), "`"+name) {
			t.Errorf("docs/feed.md does not say what %s is", name)
		}
		list, _ := v.([]any)
		for _, item := range list {
			for field := range item.(map[string]any) {
				if !strings.Contains(string(doc), "`releases[]."+field+"`") && field != "sourceUrl" {
					t.Errorf("docs/feed.md does not say what releases[].%s is", field)
				}
			}
		}
	}
}
