package pgunzip_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// levels is a command for each level.
func levels(command string, from, to int, rest ...string) [][]string {
	var all [][]string
	for i := from; i <= to; i++ {
		all = append(all, append([]string{command, fmt.Sprintf("-%d", i)}, rest...))
	}
	return all
}

// TestCompressors decodes what the programs make that people use.
func TestCompressors(t *testing.T) {
	all := mixture(t, 1<<20)
	for _, tt := range []struct {
		name, pkg string
		size      int // of what is compressed
		commands  [][]string
	}{
		{"gzip", "gzip", 400 << 10, append(levels("gzip", 1, 9, "-c"), []string{"gzip", "--rsyncable", "-c"})},
		{"pigz", "pigz", 1 << 20, [][]string{
			{"pigz", "-1", "-c"}, {"pigz", "-6", "-c"}, {"pigz", "-9", "-c"}, {"pigz", "-p4", "-c"}, {"pigz", "-0", "-c"},
			{"pigz", "-i", "-p2", "-c"}, {"pigz", "-R", "-c"}, {"pigz", "-H", "-c"}, {"pigz", "-U", "-c"}, {"pigz", "-b", "32", "-p2", "-c"},
		}},
		{"pigz as zopfli", "pigz", 24 << 10, [][]string{{"pigz", "-11", "-I", "3", "-c"}}},
		{"zopfli", "zopfli", 12 << 10, [][]string{{"zopfli", "--i1", "-c", "FILE"}}},
		{"igzip", "isal", 1 << 20, append(levels("igzip", 0, 3, "-c"), []string{"igzip", "-1", "-T", "2", "-c"})},
		{"libdeflate", "libdeflate-tools", 300 << 10, levels("libdeflate-gzip", 1, 12, "-c", "FILE")},
		{"bgzip", "tabix", 1 << 20, [][]string{{"bgzip", "-c"}, {"bgzip", "-c", "-l", "1"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.commands[0][0]); err != nil {
				t.Skipf("%v: Debian's package %s has it", err, tt.pkg)
			}
			for _, command := range tt.commands {
				content := all[:fewer(tt.size)]
				decodes(t, strings.Join(command, " "), output(t, command, content), content)
			}
		})
	}
}

func decodes(t *testing.T, name string, file, content []byte) {
	t.Helper()
	wanted(t, name, run(t, pgunzip.NewReader(t.Context(), whole(file), pgunzip.Options{Workers: 1})), result{content, clean})
	wanted(t, name+", guessed", run(t, pgunzip.NewGuessed(t.Context(), whole(file), 2, 64<<10)), result{content, clean})
}

// zlibScript writes gzip with what zlib can be told: level, window, memory, strategy,
// and a flush of a kind after each so many bytes. Each file has its length before it.
const zlibScript = `
import sys, zlib
data = sys.stdin.buffer.read()
out = sys.stdout.buffer
for arg in sys.argv[1:]:
    level, wbits, mem, strategy, flush, each = map(int, arg.split(","))
    z = zlib.compressobj(level, zlib.DEFLATED, wbits + 16, mem, strategy)
    b = bytearray()
    for i in range(0, len(data), each):
        b += z.compress(data[i:i+each])
        if flush: b += z.flush(flush)
    b += z.flush()
    out.write(len(b).to_bytes(4, "little") + b)
`

// TestZlib decodes what zlib makes of options that programs do not offer.
func TestZlib(t *testing.T) {
	t.Parallel()
	const (
		filtered, huffmanOnly, rle, fixed = 1, 2, 3, 4
		partial, synced, full, block      = 1, 2, 3, 5
		whole                             = 1 << 30
	)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("%v: Debian's package python3-minimal has it", err)
	}
	content := mixture(t, fewer(300<<10))
	command := []string{"python3", "-c", zlibScript}
	for _, options := range [][6]int{
		{6, 15, 8, fixed, 0, whole}, {6, 15, 8, huffmanOnly, 0, whole}, {6, 15, 8, rle, 0, whole}, {6, 15, 8, filtered, 0, whole},
		{6, 9, 1, 0, 0, whole}, {1, 10, 9, 0, 0, whole}, {9, 15, 9, 0, 0, whole}, {0, 15, 8, 0, 0, whole},
		{6, 15, 8, 0, partial, 5000}, {6, 15, 8, 0, synced, 1000}, {6, 15, 8, 0, full, 20000}, {6, 15, 8, fixed, full, 500}, {6, 15, 1, 0, block, 333},
	} {
		command = append(command, strings.Trim(strings.ReplaceAll(fmt.Sprint(options), " ", ","), "[]"))
	}
	files := output(t, command, content)
	for _, options := range command[3:] {
		n := binary.LittleEndian.Uint32(files)
		decodes(t, options, files[4:4+n], content)
		files = files[4+n:]
	}
	if len(files) > 0 {
		t.Errorf("%d bytes more", len(files))
	}
}

// output runs a command with content as its input, or as FILE.
func output(t *testing.T, command []string, content []byte) []byte {
	t.Helper()
	args := append([]string(nil), command[1:]...)
	if last := len(args) - 1; args[last] == "FILE" {
		args[last] = t.TempDir() + "/content"
		if err := os.WriteFile(args[last], content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), command[0], args...)
	c.Stdin = bytes.NewReader(content)
	var out, failed bytes.Buffer
	c.Stdout, c.Stderr = &out, &failed
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(command, " "), err, failed.Bytes())
	}
	return out.Bytes()
}
