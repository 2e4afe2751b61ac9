package main

import (
	"fmt"
	"io"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// tarballStatus is what of the store is kept tarballs.
type tarballStatus struct {
	Count   int    `json:"count"`
	Bytes   int64  `json:"bytes"`             // of them
	Damaged int    `json:"damaged,omitempty"` // without a record that can be read
	Error   string `json:"error,omitempty"`   // why they could not be listed
}

// statusOfTarballs counts what is kept.
func statusOfTarballs(st *store.Store) *tarballStatus {
	var s tarballStatus
	all, err := st.Tarballs()
	bad, berr := st.DamagedTarballs()
	if err == nil {
		err = berr
	}
	if err != nil {
		s.Error = err.Error()
	}
	for _, t := range all {
		s.Count++
		s.Bytes += t.Size
	}
	s.Damaged = len(bad)
	return &s
}

// print says it to a person, if there is anything to say.
func (s *tarballStatus) print(w io.Writer, root string) {
	if s == nil {
		return
	}
	if s.Count > 0 {
		plural := "s"
		if s.Count == 1 {
			plural = ""
		}
		fmt.Fprintf(w, "%d tarball%s kept\t%s/tarballs\t%s\n", s.Count, plural, root, diskspace.Text(s.Bytes))
	}
	if s.Damaged > 0 {
		fmt.Fprintf(w, "  ! %d without a record that can be read: see rocm-nightly tarball --list\n", s.Damaged)
	}
	if s.Error != "" {
		fmt.Fprintf(w, "  ! %s\n", printable(s.Error))
	}
}
