package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// rootName is the file in ROOT that says in which form everything below it is.
const rootName = "store.json"

// rootFormat is that of store.json. Its schema is the layout's: a program that
// lays a store out in another way raises it, and this one refuses the whole. A
// program older than store.json itself goes by state.json, of which such a change
// raises the schema too.
var rootFormat = schema.Format{Name: rootName, Else: "choose another store with --root"}

// The formats of the other records. A step that is added raises the schema, and
// needs a stored record of the schema before it in testdata.
var (
	stateFormat   = schema.Format{Name: stateName, Else: "move " + stateName + " away: it is made anew"}
	checksFormat  = schema.Format{Name: checksName}
	ledgerFormat  = schema.Format{Name: ledgerName}
	runFormat     = schema.Format{Name: "run record"}
	linksFormat   = schema.Format{Name: linksName, Else: "move " + linksName + " away: what its links have replaced is forgotten then"}
	tarballFormat = schema.Format{Name: tarballName, Else: "remove its directory"}
	leaseFormat   = schema.Format{Name: "lease"}
	sealFormat    = schema.Format{Name: "seal"}
)

// maxRootLen bounds store.json, in bytes.
const maxRootLen = 64 << 10

// checkRoot refuses a store that a newer program has laid out. What cannot be
// read as store.json says nothing: marked tells.
func (s *Store) checkRoot() (marked bool, err error) {
	b, err := readFile(filepath.Join(s.root, rootName), maxRootLen)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if errors.Is(err, errDamaged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = rootFormat.Read(b)
	if errors.Is(err, ErrNewer) {
		return true, fmt.Errorf("read %s: %w", filepath.Join(s.root, rootName), err)
	}
	return err == nil, nil
}

// mark writes store.json where there is none; one that is damaged is kept beside
// it. That it cannot be written, on a full disk, is no reason not to go on: the
// run may be about to make room.
func (s *Store) mark() error {
	marked, err := s.checkRoot()
	if err == nil {
		err = sweepHalves(s.root, "."+rootName)
	}
	if err != nil || marked {
		return err
	}
	path := filepath.Join(s.root, rootName)
	err = os.Rename(path, path+".broken")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.disk.writeFile(path, fmt.Appendf(nil, "{\n  \"schema\": %d\n}\n", rootFormat.Now()))
	}
	if err != nil {
		s.event(EventState, "", path, "could not be written: %v", err)
	}
	return nil
}
