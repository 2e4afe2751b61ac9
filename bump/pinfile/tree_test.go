package pinfile

import (
	"testing"
)

func TestYAMLX(t *testing.T) {
	src := fixture(t, "a.yaml")
	f, _ := formatNamed("yaml")
	doc, err := f.read(src, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range doc.(lister).list() {
		t.Logf("%s %q raw=%q %s", s.Path, s.Value, src[s.Start:s.End], s.Problem)
	}
}
