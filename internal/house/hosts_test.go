package house

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// What is built in and what the documentation says of it are the same list.
func TestEveryHostIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for name, ch := range amd.Builtin().Channels {
		for _, ix := range ch.Indexes {
			asked, to := "always", "–"
			if ix.Archive {
				asked = "archive"
			}
			if len(ix.AllowHosts) > 0 {
				to = strings.Join(ix.AllowHosts, ", ")
			}
			row := fmt.Sprintf("| %s | %s | %s | %s |", name, ix.URL, asked, to)
			if !strings.Contains(string(doc), row) {
				t.Errorf("docs/hosts.md lacks\n%s", row)
			}
			rows++
		}
	}
	if n := strings.Count(string(doc), " | https://"); n != rows {
		t.Errorf("docs/hosts.md lists %d indexes, %d are built in", n, rows)
	}
}
