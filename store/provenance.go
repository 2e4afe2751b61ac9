package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// provenanceSuffix ends the names of the statements in runs, beside the records.
const provenanceSuffix = ".intoto.json"

// WriteProvenance keeps a statement about how the generation called gen was made,
// durably: runs/GEN.intoto.json. It goes with its generation.
func (sl *Slot) WriteProvenance(gen string, statement []byte) error {
	err := errors.Join(sl.err, checkName("generation", gen))
	if err == nil {
		err = sl.record(gen+provenanceSuffix, statement)
	}
	if err != nil {
		return fmt.Errorf("write the provenance of %s: %w", gen, err)
	}
	return nil
}

// ReadProvenance returns what WriteProvenance has kept. An error matches
// fs.ErrNotExist when there is nothing: it is not made again, for what happened
// then cannot be seen now.
func (sl *Slot) ReadProvenance(gen string) ([]byte, error) {
	err := errors.Join(sl.err, checkName("generation", gen))
	var b []byte
	if err == nil {
		b, err = readFile(sl.path(runsName, gen+provenanceSuffix), maxRunLen)
	}
	if err != nil {
		return nil, fmt.Errorf("read the provenance of %s: %w", gen, err)
	}
	return b, nil
}

// dropProvenance is trimProvenance for those who have done what they were to do.
func (sl *Slot) dropProvenance() {
	if err := sl.trimProvenance(); err != nil {
		sl.store.event(EventDebris, sl.Name(), sl.path(runsName), "statements about what was removed are left: %v", err)
	}
}

// trimProvenance removes the statements about generations that are gone.
func (sl *Slot) trimProvenance() error {
	entries, err := os.ReadDir(sl.path(runsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	have, err := sl.generationNames()
	if err != nil {
		return err
	}
	for _, e := range entries {
		gen, ok := strings.CutSuffix(e.Name(), provenanceSuffix)
		if !ok || checkName("generation", gen) != nil || slices.Contains(have, gen) {
			continue
		}
		if err := os.Remove(sl.path(runsName, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
