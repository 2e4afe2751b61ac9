//go:build heavy

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheLoaderAgreesWithLdSoOnTheCorpus resolves every program and library of
// the corpus, as it was packed, as ld.so does, and finds the same versions of
// symbols missing.
func TestTheLoaderAgreesWithLdSoOnTheCorpus(t *testing.T) {
	needLoader(t)
	tarball := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if tarball == "" {
		t.Skip("the corpus is not built: run scripts/corpus.sh, and set ROCM_NIGHTLY_CORPUS_TARBALL to what it prints")
	}
	dir := real(t, t.TempDir())
	run(t, "tar", "xzf", tarball, "-C", dir)
	l := loaderOf(t, dir)
	count := 0
	theirs := map[string]bool{}
	for _, e := range l.tree.all {
		if !e.isFile() || !e.hostELF() || !e.elf.Dynamic || len(e.elf.Needed) == 0 {
			continue
		}
		count++
		if err := os.Chmod(filepath.Join(dir, e.path), 0o755); err != nil { // ld.so wants it
			t.Fatal(err)
		}
		agree(t, list(t, filepath.Join(dir, e.path)), resolveIn(l, e.path))
		for _, v := range versionErrors(t, dir, filepath.Join(dir, e.path)) {
			theirs[v] = true
		}
	}
	if count < 200 {
		t.Errorf("only %d files were compared", count)
	}
	r, err := Run(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versionsOf(r) {
		if !theirs[v] && !strings.Contains(v, glibcPrivate) {
			t.Errorf("ld.so does not miss %s", v)
		}
		delete(theirs, v)
	}
	if len(theirs) > 0 {
		t.Errorf("ld.so misses %v", theirs)
	}
	t.Logf("%d programs and libraries", count)
}
