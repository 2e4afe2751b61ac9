package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// wrapperMark is in every wrapper that repack writes.
const wrapperMark = "_rocm_nightly_root="

// maxWrapper bounds what is read of one.
const maxWrapper = 1 << 20

// wrappers checks the bin directory of a prefix against that of its ROCm tree:
// every program has a wrapper or a link of its name, each of those leads to a
// program, and each wrapper is as it was written. A bare tree has none, and
// neither has a prefix that somebody else made.
func wrappers(_ context.Context, a *auditor) error {
	t := a.tree
	if t.rocm == "" || !a.ours() {
		return nil
	}
	for _, e := range t.in[t.inROCm("bin")] {
		if p := t.follow(".", e.path); p.entry == nil || !p.entry.executable() {
			continue
		}
		a.checked["wrappers"]++
		name := path.Join("bin", path.Base(e.path))
		if t.entries[name] == nil {
			a.file(Finding{Rule: RuleWrapper, Severity: Required, Path: name, Subject: path.Base(e.path),
				Detail: "is missing: " + e.path + " has no wrapper", Hint: "repack the release"})
		}
	}
	written := a.written()
	for _, e := range t.in["bin"] {
		a.wrapper(e, written[e.path])
	}
	return nil
}

// ours tells whether repack made the prefix, even if the lists are lost.
func (a *auditor) ours() bool {
	t := a.tree
	if t.entries[manifest.Name] != nil || t.entries[manifest.FilesName] != nil {
		return true
	}
	for _, e := range t.in["bin"] {
		if b, err := a.contentOf(e); err == nil && bytes.Contains(b, []byte(wrapperMark)) {
			return true
		}
	}
	return false
}

func (a *auditor) contentOf(e *entry) ([]byte, error) {
	if !e.isFile() || e.size > maxWrapper || e.err != nil {
		return nil, errors.New("not a script")
	}
	f, err := a.tree.open(e.path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading
	return io.ReadAll(io.LimitReader(f, maxWrapper))
}

// written are the digests of the wrappers as they were written, in hex, from
// the facts or from files.jsonl; none where there is neither.
func (a *auditor) written() map[string]string {
	sums := map[string]string{}
	if len(a.tree.known) > 0 {
		for _, e := range a.tree.in["bin"] {
			if k := a.tree.known[e.path]; k != nil && k.Kind == manifest.Regular {
				sums[e.path] = k.SHA256
			}
		}
		return sums
	}
	if e := a.tree.entries[manifest.FilesName]; e == nil || !e.isFile() {
		return sums
	}
	f, err := a.tree.open(manifest.FilesName)
	if err != nil {
		return sums // reported as unreadable
	}
	defer f.Close() // opened for reading
	readSums(io.LimitReader(f, maxOmitted), sums)
	return sums
}

// readSums takes the digests of what is in bin from a files.jsonl. The list is
// sorted and long: lines of other files are passed over undecoded.
func readSums(r io.Reader, sums map[string]string) {
	start := []byte(`{"path":"bin/`)
	for in := bufio.NewReaderSize(r, 64<<10); ; {
		line, err := in.ReadSlice('\n')
		if bytes.HasPrefix(line, start) && err == nil {
			var f manifest.File
			if json.Unmarshal(line, &f) == nil && f.Kind == manifest.Regular {
				sums[f.Path] = f.SHA256
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// wrapper checks one entry of the prefix's bin, of which sum is the digest that
// it had when it was made, "" if nobody knows.
func (a *auditor) wrapper(e *entry, sum string) {
	t := a.tree
	f := Finding{Rule: RuleWrapper, Severity: Required, Path: e.path, Subject: path.Base(e.path), Hint: "repack the release"}
	target := t.inROCm(path.Join("bin", path.Base(e.path)))
	p := t.follow(".", target)
	switch {
	case !e.isFile():
		return // where links lead, and whether to a program, is said by others
	case !e.executable():
		f.Detail = "cannot be executed"
	case p.hidden: // which is said of the directory
		return
	case p.entry == nil:
		f.Detail = "starts " + target + ", which does not exist"
	case !p.entry.executable():
		f.Detail = "starts " + target + ", which cannot be executed"
	default:
		if f.Detail = a.altered(e, sum); f.Detail == "" {
			return
		}
		if f.Detail == notOurs {
			f.Severity, f.Hint = Warning, "somebody put it there: it starts without the wrapper's environment"
		}
	}
	a.file(f)
}

const notOurs = "is none of the wrappers that were written"

// altered says how a wrapper is not what was written. Without its digest, one of
// ours must at least end by starting the program.
func (a *auditor) altered(e *entry, sum string) string {
	b, err := a.contentOf(e)
	if err != nil {
		return "" // reported as unreadable
	}
	got := sha256.Sum256(b)
	switch {
	case sum != "" && sum == hex.EncodeToString(got[:]):
		return ""
	case len(bytes.TrimSpace(b)) == 0:
		return "is empty"
	case sum != "":
		return "is not what was written: somebody changed it"
	case !bytes.Contains(b, []byte(wrapperMark)):
		return notOurs
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "exec ") || !strings.HasSuffix(last, `"$@"`) {
		return "is not whole: it does not end by starting the program"
	}
	return ""
}
