package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// readManifest reads what a prefix says of itself, and takes the target from
// there unless it is known. A family or multiarch is no target: what one GPU of
// several needs is not asked then.
func (a *auditor) readManifest() {
	if e := a.tree.entries[manifest.Name]; e != nil && e.isFile() {
		f, err := a.tree.open(manifest.Name)
		if err == nil {
			a.prefix, err = manifest.Read(f)
			f.Close() // opened for reading
		}
		a.badList = err
	}
	if a.target == "" && a.prefix != nil {
		var o struct {
			Target string            `json:"target"`
			Env    map[string]string `json:"env"`
		}
		if json.Unmarshal(a.prefix.Options, &o) == nil {
			a.target = gfx.Overridden(o.Target, o.Env[gfx.OverrideName])
		}
	}
	// The tools of ROCm print features behind the name, which code has or has not
	// for the same GPU: gfx90a:xnack+.
	a.target, _, _ = strings.Cut(a.target, ":")
	if !gfx.IsTarget(a.target) {
		a.target = ""
	}
}

// manifests checks that a prefix of ours says what it is. One that somebody
// else made has no such files.
func manifests(_ context.Context, a *auditor) error {
	t := a.tree
	if t.rocm == "" {
		return nil
	}
	f := Finding{Rule: RuleManifest, Severity: Warning, Path: manifest.Name,
		Hint: "the programs of the prefix work, but nothing says any more what it is; repack the release"}
	switch {
	case a.badList != nil:
		f.Detail = "cannot be read: " + a.badList.Error()
	case t.entries[manifest.Name] == nil && t.entries[manifest.FilesName] != nil:
		f.Detail = "is missing: it says which release this is"
	case a.prefix != nil && t.entries[manifest.FilesName] == nil:
		f.Path, f.Detail = manifest.FilesName, "is missing: it lists the files with their digests"
	case a.prefix != nil:
		err := t.checkList()
		if err == nil {
			return nil
		}
		f.Path, f.Detail = manifest.FilesName, "cannot be read: "+err.Error()
	default:
		return nil
	}
	a.file(f)
	return nil
}

// checkList tells whether files.jsonl is a list of files to its end. Its lines
// are not decoded: there are tens of thousands, and whoever reads them does that.
func (t *tree) checkList() error {
	e := t.entries[manifest.FilesName]
	if e.err != nil || !e.isFile() {
		return nil // which is said elsewhere
	}
	f, err := t.open(manifest.FilesName)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	in := bufio.NewReaderSize(io.LimitReader(f, maxOmitted), 64<<10)
	for n, start := 1, true; ; {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0 && start && n > 1:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("it ends in line %d", n)
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		case start && !bytes.HasPrefix(line, []byte("{")), err == nil && !bytes.HasSuffix(line, []byte("}\n")):
			return fmt.Errorf("line %d is no entry of a list of files", n)
		}
		if start = err == nil; start {
			n++
		}
	}
}
