package provenance_test

import (
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func ExampleStatement() {
	digest := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	began := time.Date(2026, 9, 30, 6, 30, 0, 0, time.UTC)
	text, err := provenance.Statement(provenance.Build{
		Subjects: []provenance.File{{Name: "files.jsonl", Digest: release.Digest(digest)}},
		Tarball:  provenance.Tarball{Name: "rocm.tar.gz", URL: "https://user:secret@mirror.example/rocm.tar.gz?token=secret", Digest: release.Digest(digest)},
		Recipe:   release.Digest(digest), Tool: provenance.Tool{Version: "v1.0.0", Go: "go1.26"}, ID: "1", Started: began, Finished: began.Add(time.Second),
	})
	fmt.Println(len(text) > 0, err)
	fmt.Println(provenance.Redacted("https://user:secret@mirror.example/rocm.tar.gz?token=secret"))
	// Output:
	// true <nil>
	// https://mirror.example/rocm.tar.gz
}
