package diff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// The files of a record, which is what stays of a tree that is gone: enough for
// Compare to tell what was in it. manifest.json is the third.
const (
	// PackedList is files.jsonl, compressed with zstd.
	PackedList = manifest.FilesName + ".zst"
	// PackedTexts holds the small files that Compare reads, compressed with
	// zstd: one JSON object a line, {"path": …, "text": …}, the path being
	// relative to the ROCm tree and the text in base64.
	PackedTexts = "texts.jsonl.zst"
)

// Limits of a record.
const (
	maxTexts     = 64 << 20  // bytes of all texts together; AMD's trees have 3 MB
	maxListBytes = 512 << 20 // bytes of a files.jsonl, unpacked; AMD's have 12 MB
	maxWindow    = 64 << 20  // bytes of memory for zstd's window
)

// recordText is one line of PackedTexts.
type recordText struct {
	Path string `json:"path"`
	Text []byte `json:"text"`
}

// Record returns, by name, the files that stay of the prefix in dir when the
// rest is deleted: a directory that holds them is a Source. dir has a
// files.jsonl, which is believed, and a manifest.json.
func Record(ctx context.Context, dir string) (map[string][]byte, error) {
	s, err := openSide(ctx, Source{Dir: dir, List: manifest.FilesName}, 1)
	if err != nil {
		return nil, fmt.Errorf("make a record of %s: %w", dir, err)
	}
	defer s.root.Close() // opened for reading
	out := map[string][]byte{}
	for name, pack := range map[string]func() ([]byte, error){
		manifest.Name: func() ([]byte, error) { return s.whole(manifest.Name) },
		PackedList:    s.packList,
		PackedTexts:   func() ([]byte, error) { return s.packTexts(ctx) },
	} {
		if out[name], err = pack(); err != nil {
			return nil, fmt.Errorf("make a record of %s: %w", dir, err)
		}
	}
	return out, nil
}

// whole reads a file beside the tree.
func (s *side) whole(name string) ([]byte, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f, maxListBytes)
}

// bounded reads to the end of what has at most limit bytes.
func bounded(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return b, err
}

// pack compresses what write writes.
func pack(write func(w io.Writer) error) ([]byte, error) {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(z), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (s *side) packList() ([]byte, error) {
	f, err := s.open(manifest.FilesName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return pack(func(w io.Writer) error { _, err := io.Copy(w, f); return err })
}

// packTexts packs what Compare would read of the tree. What cannot be read is
// left out: Compare says so of the tree as well.
func (s *side) packTexts(ctx context.Context) ([]byte, error) {
	return pack(func(w io.Writer) error {
		enc, total := json.NewEncoder(w), 0
		for i := range s.files {
			f := &s.files[i]
			if !readAsText(f) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			text, err := s.text(f.Path, maxRock)
			if err != nil {
				continue
			}
			if total += len(text); total > maxTexts {
				return nil
			}
			if err := enc.Encode(recordText{f.Path, text}); err != nil {
				return err
			}
		}
		return nil
	})
}

// readAsText tells whether Compare reads the content of a file as text.
func readAsText(f *file) bool {
	if !f.regular() {
		return false
	}
	if f.Path == rockPath {
		return f.Size <= maxRock
	}
	_, tells := teller(f)
	return f.Size <= min(maxConfig, maxVersionFile) && (tells != nil || isConfig(f.Path) || slices.Contains(hipFiles, f.Path))
}

// unpacked opens a packed file of a record for reading.
func (s *side) unpacked(name string) (io.ReadCloser, error) {
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxListBytes))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	return &unpackedFile{z, f}, nil
}

// unpackedFile ends both the decompression and the file.
type unpackedFile struct {
	*zstd.Decoder
	f *os.File
}

// Close gives both up.
func (u *unpackedFile) Close() error {
	u.Decoder.Close()
	return u.f.Close()
}

// openList opens the files.jsonl, or the packed one of a record.
func (s *side) openList(name string) (io.ReadCloser, error) {
	f, err := s.open(name)
	if !errors.Is(err, fs.ErrNotExist) || name != manifest.FilesName {
		return f, err
	}
	packed, perr := s.unpacked(PackedList)
	if errors.Is(perr, fs.ErrNotExist) {
		return nil, err // what is missing is the list
	}
	return packed, perr
}

// kept is the text of a file of which only a record is here.
func (s *side) kept(p string) ([]byte, error) {
	if s.texts == nil {
		if err := s.readTexts(); err != nil {
			return nil, err
		}
	}
	text, ok := s.texts[p]
	if !ok {
		return nil, errNoContent
	}
	return text, nil
}

// readTexts reads the texts of a record; a side without one has none.
func (s *side) readTexts() error {
	s.texts = map[string][]byte{}
	r, err := s.unpacked(PackedTexts)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	dec := json.NewDecoder(io.LimitReader(r, 2*maxTexts)) // base64 takes a third more
	for {
		var t recordText
		if err := dec.Decode(&t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", PackedTexts, err)
		}
		s.texts[t.Path] = t.Text
	}
}

// ListDigest is the SHA-256, in hex, of the files.jsonl that dir holds as it is
// or packed. A record whose list is not the one that was recorded is no record.
func ListDigest(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	s := &side{root: root}
	f, err := s.openList(manifest.FilesName)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashOf(io.LimitReader(f, maxListBytes))
}

// ReadList reads the files.jsonl that dir holds as it is or packed, and returns its
// entries with its SHA-256 in hex.
func ReadList(dir string) ([]manifest.File, string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer root.Close()
	s := &side{root: root}
	f, err := s.openList(manifest.FilesName)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	h := sha256.New()
	all := io.TeeReader(io.LimitReader(f, maxListBytes), h)
	files, err := manifest.ReadFiles(all)
	if err == nil {
		_, err = io.Copy(io.Discard, all)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the list of %s: %w", dir, err)
	}
	return files, hex.EncodeToString(h.Sum(nil)), nil
}
