package pinfile

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkEdit edits one value in the middle of a file of 100 kB, which is more
// than the pins of a whole distribution's ROCm take.
func BenchmarkEdit(b *testing.B) {
	for _, f := range []struct {
		path, head, entry, tail, key string
	}{
		{"pins.nix", "{\n", "  gfx%[1]d = { version = \"10.2.0a20260930\"; hash = \"%[2]s\"; };\n", "}\n", "gfx1000.version"},
		{"pins.json", "{\n\"x\": 1", ",\n\"gfx%[1]d\": {\"version\": \"10.2.0a20260930\", \"hash\": \"%[2]s\"}", "\n}\n", "gfx1000.version"},
		{"pins.toml", "", "[gfx%[1]d]\nversion = \"10.2.0a20260930\"\nhash = \"%[2]s\"\n", "", "gfx1000.version"},
		{"pins.yaml", "", "gfx%[1]d:\n  version: 10.2.0a20260930\n  hash: %[2]s\n", "", "gfx1000.version"},
		{"pins.bzl", "PINS = {\n", "    \"gfx%[1]d\": struct(version = \"10.2.0a20260930\", hash = \"%[2]s\"),\n", "}\n", "PINS.gfx1000.version"},
		{"pins.sh", "", "GFX%[1]d_VERSION=10.2.0a20260930\nGFX%[1]d_HASH=%[2]s\n", "", "GFX1000_VERSION"},
		{"pins.cmake", "", "set(GFX%[1]d_VERSION 10.2.0a20260930)\nset(GFX%[1]d_HASH %[2]s)\n", "", "GFX1000_VERSION"},
	} {
		b.Run(f.path, func(b *testing.B) {
			var src bytes.Buffer
			src.WriteString(f.head)
			for i := 0; src.Len() < 100<<10 || i <= 1000; i++ {
				fmt.Fprintf(&src, f.entry, i, newSRI)
			}
			src.WriteString(f.tail)
			set := map[string]string{f.key: "10.2.0a20261001"}
			b.SetBytes(int64(src.Len()))
			for b.Loop() {
				if _, err := Edit(f.path, src.Bytes(), set, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
