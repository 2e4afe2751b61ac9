package unpack

import (
	"archive/tar"
	"fmt"
	"slices"
	"strings"
)

// oneReading refuses an entry that tools read in different ways. Nothing of it
// leads out of the tree, but what one tool was shown to be harmless must be
// what another one unpacks, down to where the next entry begins.
func oneReading(hdr *tar.Header) error {
	switch hdr.Typeflag {
	case tar.TypeDir, tar.TypeSymlink, tar.TypeLink:
		// POSIX gives a directory a size without content, and a hard link
		// content that GNU tar and archive/tar take for the next headers.
		if hdr.Size != 0 {
			return fmt.Errorf("%w: a directory or link of %d bytes, which has no content", ErrRefused, hdr.Size)
		}
	}
	if hdr.Typeflag != tar.TypeDir && (strings.HasSuffix(hdr.Name, "/") || strings.HasSuffix(hdr.Name, "/.")) {
		// GNU tar makes a directory of it, archive/tar a file.
		return fmt.Errorf("%w: the name is that of a directory, and this is none", ErrRefused)
	}
	return oneName(hdr)
}

// oneName refuses extended headers that contradict each other, or that
// archive/tar passes over where others do not.
func oneName(hdr *tar.Header) error {
	r := hdr.PAXRecords
	for _, key := range []string{"path", "linkpath", "size"} {
		// To POSIX and GNU tar that is no name at all, to archive/tar no record.
		if v, ok := r[key]; ok && v == "" {
			return fmt.Errorf("%w: an extended header with an empty %s", ErrRefused, key)
		}
	}
	if p := r["path"]; p != "" && p != hdr.Name && r["GNU.sparse.name"] != hdr.Name {
		return fmt.Errorf("%w: it has a second name, %.200q", ErrRefused, p)
	}
	if p := r["linkpath"]; p != "" && p != hdr.Linkname {
		return fmt.Errorf("%w: it has a second link target, %.200q", ErrRefused, p)
	}
	for key := range r {
		if strings.HasPrefix(key, "GNU.sparse.") && !knownSparse(r) {
			return fmt.Errorf("%w: a sparse file of an unknown kind", ErrRefused)
		}
	}
	return nil
}

// knownSparse says whether archive/tar takes the records for those of a sparse
// file; where it does not, it unpacks the file's map as its content.
func knownSparse(r map[string]string) bool {
	version := r["GNU.sparse.major"] + "." + r["GNU.sparse.minor"]
	return slices.Contains([]string{"0.0", "0.1", "1.0"}, version) || version == "." && r["GNU.sparse.map"] != ""
}

// global judges a header for all entries that follow. archive/tar leaves it to
// its caller, and GNU tar obeys: comments and defaults of owners and times are
// passed over, and what would make other files of the entries is refused.
func global(hdr *tar.Header) error {
	for key := range hdr.PAXRecords {
		if key == "path" || key == "linkpath" || key == "size" || strings.HasPrefix(key, "GNU.sparse.") {
			return fmt.Errorf("%w: a global header that sets a name or a size for every entry", ErrRefused)
		}
	}
	return nil
}
