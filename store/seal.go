package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// A seal is what is known of a generation beside what it says of itself: the
// digests of its lists, and by what each of its files is told to be unchanged. It
// lies in the slot, SLOT/seals/NAME.seal, is made by Commit, brought up to date by
// Verify, and goes with the generation. It can be lost: then the next full Verify
// makes it anew, of what is there then.
//
// Its form is one line of JSON, a line "INODE MTIME SIZE" for each regular file in
// the order of files.jsonl (decimal; the time in nanoseconds since 1970; all 0 for
// one that was damaged), and the SHA-256 of all that in hex.
const (
	sealsName  = "seals"
	sealSuffix = ".seal"
	sealSchema = 1
	maxSeal    = 256 << 20 // bytes: of maxListed files
)

// sealHead is the first line.
type sealHead struct {
	Schema     int    `json:"schema"`
	Generation string `json:"generation"`
	Dir        uint64 `json:"dir"`               // inode of its directory: a namesake's seal is no seal
	Manifest   string `json:"manifest"`          // SHA-256 of manifest.json, hex
	Files      string `json:"files"`             // of files.jsonl
	Omitted    string `json:"omitted,omitempty"` // of omitted.jsonl, if there is one
	Entries    int    `json:"entries"`           // lines that follow
}

type seal struct {
	dir    uint64
	lists  [3][32]byte // digests of manifest.json, files.jsonl and omitted.jsonl; zero: none
	stamps []stamp
}

var errSeal = errors.New("no seal of it can be read")

// encode is the content of the file.
func (se *seal) encode(generation string) ([]byte, error) {
	h := sealHead{Schema: sealSchema, Generation: generation, Dir: se.dir, Entries: len(se.stamps),
		Manifest: hex.EncodeToString(se.lists[0][:]), Files: hex.EncodeToString(se.lists[1][:])}
	if se.lists[2] != [32]byte{} {
		h.Omitted = hex.EncodeToString(se.lists[2][:])
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode a seal: %w", err)
	}
	b := make([]byte, 0, len(head)+48*len(se.stamps)+80)
	b = append(append(b, head...), '\n')
	for _, s := range se.stamps {
		b = append(strconv.AppendUint(b, s.ino, 10), ' ')
		b = append(strconv.AppendInt(b, s.mtime, 10), ' ')
		b = append(strconv.AppendInt(b, s.size, 10), '\n')
	}
	return sealed(b), nil
}

// sealed ends b with its digest.
func sealed(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append(hex.AppendEncode(b[:len(b):len(b)], sum[:]), '\n')
}

// parseSeal reads what encode wrote.
func parseSeal(b []byte) (h sealHead, se *seal, err error) {
	const tail = 2*sha256.Size + 1
	if len(b) < tail {
		return h, nil, fmt.Errorf("%w: it is cut off", errSeal)
	}
	body, end := b[:len(b)-tail], b[len(b)-tail:]
	line, rest, ok := bytes.Cut(body, []byte("\n"))
	if line, err = sealFormat.Read(line); err == nil {
		err = json.Unmarshal(line, &h)
	}
	if !ok || err != nil {
		return h, nil, fmt.Errorf("%w: its first line: %w", errSeal, err)
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:])+"\n" != string(end) {
		return h, nil, fmt.Errorf("%w: its digest is wrong", errSeal)
	}
	if h.Entries < 0 || h.Entries != bytes.Count(rest, []byte("\n")) || h.Entries > maxListed {
		return h, nil, fmt.Errorf("%w: it is not as long as it says", errSeal)
	}
	se = &seal{dir: h.Dir, stamps: make([]stamp, h.Entries)}
	for i, text := range []string{h.Manifest, h.Files, h.Omitted} {
		if i == 2 && text == "" {
			continue
		}
		raw, err := hex.DecodeString(text)
		if err != nil || len(raw) != sha256.Size {
			return h, nil, fmt.Errorf("%w: %q is no digest", errSeal, text)
		}
		se.lists[i] = [32]byte(raw)
	}
	for i := range se.stamps {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if se.stamps[i], ok = parseStamp(line); !ok {
			return h, nil, fmt.Errorf("%w: line %d", errSeal, i+2)
		}
	}
	if len(rest) > 0 {
		return h, nil, fmt.Errorf("%w: it is not as long as it says", errSeal)
	}
	return h, se, nil
}

// parseStamp reads three numbers.
func parseStamp(line []byte) (s stamp, ok bool) {
	a, rest, _ := bytes.Cut(line, []byte(" "))
	b, c, _ := bytes.Cut(rest, []byte(" "))
	var errs [3]error
	s.ino, errs[0] = strconv.ParseUint(string(a), 10, 64)
	s.mtime, errs[1] = strconv.ParseInt(string(b), 10, 64)
	s.size, errs[2] = strconv.ParseInt(string(c), 10, 64)
	return s, errors.Join(errs[:]...) == nil && s.size >= 0
}

// sealPath is where the seal of a generation lies.
func sealPath(g *Generation) string {
	return filepath.Join(filepath.Dir(filepath.Dir(g.Dir)), sealsName, g.Name+sealSuffix)
}

// readSeal reads the seal of a generation whose directory has the inode dir.
func (s *Store) readSeal(g *Generation, dir uint64) (*seal, error) {
	b, err := readFile(sealPath(g), maxSeal)
	if errors.Is(err, errDamaged) {
		err = fmt.Errorf("%w: %w", errSeal, err)
	}
	if err != nil {
		return nil, err
	}
	h, se, err := parseSeal(b)
	if err == nil && (h.Generation != g.Name || h.Dir != dir) {
		err = fmt.Errorf("%w: it is of another", errSeal)
	}
	if err != nil {
		return nil, err
	}
	return se, nil
}

// writeSeal writes the seal of a generation, durably; one of a newer program is
// left. A generation that went meanwhile has none.
func (s *Store) writeSeal(g *Generation, se *seal) error {
	b, err := se.encode(g.Name)
	if err != nil {
		return err
	}
	p := sealPath(g)
	if _, err := s.readSeal(g, se.dir); errors.Is(err, ErrNewer) {
		return fmt.Errorf("write %s: %w", p, err)
	}
	if err := s.makeDir(filepath.Dir(p)); err != nil {
		return err
	}
	write := func() error { return s.disk.writeFile(p, b) }
	err = fault.Do("store.seal.write", func() error { return s.asOwner(write) })
	if errors.Is(err, fs.ErrNotExist) { // a run that began meanwhile took half of it for a dead one's
		err = s.asOwner(write)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(g.Dir); errors.Is(err, fs.ErrNotExist) {
		return s.dropSeal(g)
	}
	return nil
}

// dropSeal removes the seal of a generation that goes.
func (s *Store) dropSeal(g *Generation) error {
	err := s.asOwner(func() error { return os.Remove(sealPath(g)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweepSeals removes the seals of generations that are gone, and halves of seals.
// One that stays is in nobody's way: a namesake has another directory. The caller
// holds switch.lock. A verify that is about to name its seal makes it once more.
func (sl *Slot) sweepSeals() error {
	dir := sl.path(sealsName)
	if err := sweepHalves(dir, "."); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), sealSuffix)
		if !ok || checkName("generation", name) != nil {
			continue
		}
		if _, lerr := os.Lstat(sl.path(generationsName, name)); errors.Is(lerr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// reseal brings the seal up to date with what was found.
func (c *check) reseal(v *Verification) {
	v.Seal = SealFresh
	switch {
	case c.list == nil || c.about == nil || c.differ || c.lists[1].found.bad&flawList != 0:
		if v.Seal = SealKept; c.was == nil {
			v.Seal = SealNone
		}
		return
	}
	v.seal = c.sealed()
	if c.fast && c.was == nil || c.p.unsealed {
		v.Seal = SealNone
		return
	}
	if c.was != nil && c.was.equal(v.seal) {
		return
	}
	if err := c.p.store.writeSeal(&v.gen, v.seal); err != nil {
		v.Seal = SealUnwritable
	}
}

// sealed is what was found, as a seal.
func (c *check) sealed() *seal {
	se := &seal{dir: c.dir.Ino, stamps: make([]stamp, 0, c.list.files)}
	for i := range c.lists {
		se.lists[i] = c.lists[i].sum
	}
	for i := range c.list.entries {
		e := &c.list.entries[i]
		if e.kind != manifest.Regular {
			continue
		}
		s := e.found.stamp
		if e.found.bad != 0 {
			s = stamp{}
		}
		se.stamps = append(se.stamps, s)
	}
	return se
}

func (se *seal) equal(other *seal) bool {
	if se.dir != other.dir || se.lists != other.lists || len(se.stamps) != len(other.stamps) {
		return false
	}
	for i := range se.stamps {
		if se.stamps[i] != other.stamps[i] {
			return false
		}
	}
	return true
}

// sealOf is the seal of a tree that was just made; nil if it lists nothing. Files
// that have not the size and time that files.jsonl says are read.
func (s *Store) sealOf(ctx context.Context, dir string) *seal {
	p := &prover{store: s, o: VerifyOptions{Fast: true}, known: map[inode]proof{}}
	p.ready()
	c, err := p.open(&Generation{Dir: dir})
	if err != nil {
		return nil
	}
	defer c.close()
	if err := c.readLists(ctx); err != nil || c.list == nil || c.about == nil {
		return nil
	}
	if err := c.walk(ctx); err != nil {
		return nil
	}
	c.twins()
	return c.sealed()
}
