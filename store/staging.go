package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// ErrExists is matched by Commit's error when an equal generation, one of the
// same recipe, is installed already.
var ErrExists = errors.New("an equal generation is installed")

// ExistsError names the generation that is equal to what was staged.
type ExistsError struct {
	Generation string
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%v: %s", ErrExists, e.Generation)
}

// Unwrap lets errors.Is find ErrExists.
func (e *ExistsError) Unwrap() error { return ErrExists }

// Staging is a directory in which a generation is made, out of everybody's
// sight. It ends by Commit or Abort; if its process dies, the next Stage
// removes it.
type Staging struct {
	ctx  context.Context // of Stage, as with database/sql's transactions
	slot *Slot
	dir  string
	lock *flock.Flock // held on dir + lockSuffix; nil when the staging has ended
}

// Stage makes an empty staging directory on the file system of the
// generations, and removes those of dead processes. ctx governs the staging as
// a whole: once it is done, Commit refuses.
func (sl *Slot) Stage(ctx context.Context) (*Staging, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	st := &Staging{ctx: ctx, slot: sl, dir: sl.path(stagingPrefix + random())}
	if err := sl.store.makeDir(sl.path(generationsName)); err != nil {
		return nil, fmt.Errorf("stage in %s: %w", sl.Name(), sl.store.ownerHint(lockHint(err)))
	}
	sl.labelDirs()
	var dying []string
	err := sl.locked(ctx, func() (err error) {
		if dying, err = sl.condemn(); err != nil {
			return err
		}
		return st.create()
	})
	if err != nil {
		return nil, fmt.Errorf("stage in %s: %w", sl.Name(), lockHint(err))
	}
	sl.bury(dying)
	return st, nil
}

// create makes the directory and its lock, lock first: a directory without a
// held lock is debris. The caller holds switch.lock, and so does who looks
// for debris.
func (st *Staging) create() error {
	path := st.dir + lockSuffix // never renamed: its record says who and since when
	if err := ensureFile(path); err != nil {
		return err
	}
	fl := openLock(path)
	ok, err := tryLock(fl)
	if err == nil && !ok {
		err = fmt.Errorf("lock %s: it is held already", path)
	}
	if err == nil {
		writeHolder(path, st.slot.store.holder("stage"))
		err = fault.Point("store.stage.lock")
	}
	if err == nil {
		err = os.Mkdir(st.dir, dirMode)
	}
	if err == nil {
		err = errors.Join(os.Chmod(st.dir, dirMode), fault.Point("store.stage.made"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(path), unlock(fl))
	}
	st.lock = fl
	return nil
}

// Dir returns the absolute path of the staging directory.
func (st *Staging) Dir() string { return st.dir }

// Abort removes the staging. After Commit it does nothing, so that it can be
// deferred.
func (st *Staging) Abort() error {
	if st.lock == nil {
		return nil
	}
	dying := st.slot.path(dyingPrefix + random())
	err := moveAway(st.dir, dying)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, st.end()); err == nil {
		err = removeTree(dying)
	}
	if err != nil {
		return fmt.Errorf("abort staging in %s: %w", st.slot.Name(), err)
	}
	return nil
}

// end gives up the lock and its file.
func (st *Staging) end() error {
	err := os.Remove(st.dir + lockSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	fl := st.lock
	st.lock = nil
	return errors.Join(err, unlock(fl))
}

// Commit makes the staged tree a generation of the given version, durably:
// every byte of it is on the disk before it has its name. It is not active
// yet. A second one of a version is named …-r2, and so on. When an installed
// generation has the same recipe, that one is returned together with an
// *ExistsError, and the staging is left for Abort.
func (st *Staging) Commit(version string) (*Generation, error) {
	g, err := st.commit(version)
	if err != nil {
		err = fmt.Errorf("commit %s to %s: %w", version, st.slot.Name(), err)
	}
	return g, err
}

func (st *Staging) commit(version string) (*Generation, error) {
	if st.lock == nil {
		return nil, errors.New("the staging has ended")
	}
	if err := errors.Join(st.ctx.Err(), checkVersion(version)); err != nil {
		return nil, err
	}
	recipe, err := st.inspect()
	if err != nil {
		return nil, err
	}
	now := st.slot.store.now()
	if err := errors.Join(st.slot.store.giveTree(st.dir), os.Chmod(st.dir, dirMode), os.Chtimes(st.dir, now, now)); err != nil {
		return nil, err
	}
	if err := st.slot.store.disk.syncFS(st.dir); err != nil {
		return nil, err
	}
	seal := st.slot.store.sealOf(st.ctx, st.dir)
	if err := fault.Point("store.commit.synced"); err != nil {
		return nil, err
	}
	var g Generation
	err = st.slot.locked(st.ctx, func() error {
		v, err := st.slot.look()
		if err != nil {
			return err
		}
		if name := st.slot.withRecipe(v, version, recipe); name != "" {
			g = st.slot.generation(name, v.state)
			g.Active = name == v.current
			return &ExistsError{name}
		}
		name, err := st.name(version)
		if err != nil {
			return err
		}
		v.state.Installed = append(v.state.Installed, Install{name, now})
		g = st.slot.generation(name, v.state)
		if err := fault.Do("store.commit.save", func() error { return st.slot.save(v) }); err != nil {
			// The disk shows what is installed; the record is rebuilt from it.
			st.slot.unsaved(err)
		}
		return nil
	})
	if errors.Is(err, ErrExists) {
		return &g, err
	}
	if err != nil {
		return nil, err
	}
	if seal != nil {
		if err := st.slot.store.writeSeal(&g, seal); err != nil {
			// It can be lost: verify makes it anew.
			st.slot.store.event(EventState, st.slot.Name(), sealPath(&g), "could not be written: %v", err)
		}
	}
	if err := fault.Do("store.commit.end", st.end); err != nil {
		st.slot.store.event(EventDebris, st.slot.Name(), st.dir+lockSuffix, "%v", err)
	}
	return &g, nil
}

// inspect refuses what cannot be a generation, and returns its recipe.
func (st *Staging) inspect() (recipe string, err error) {
	fi, err := os.Lstat(st.dir)
	if err != nil {
		return "", err
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("%s is not a directory", st.dir)
	}
	entries, err := os.ReadDir(st.dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "", errors.New("the staged tree is empty")
	}
	return recipeOf(st.dir)
}

// name renames the staging to the first free name of version.
func (st *Staging) name(version string) (string, error) {
	disk := st.slot.store.disk
	first, err := st.slot.freeRevision(version)
	if err != nil {
		return "", err
	}
	for revision := first; ; revision++ {
		name := revisionName(version, revision)
		err := renameNew(st.dir, st.slot.path(generationsName, name))
		if errors.Is(err, fs.ErrExist) && revision < 1000 {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, errors.Join(fault.Point("store.commit.named"), disk.syncDir(st.slot.path(generationsName)), disk.syncDir(st.slot.path()))
	}
}

// NextName is the name that the next generation of version gets, "" if that
// cannot be told.
func (sl *Slot) NextName(version string) string {
	if sl.err != nil || checkVersion(version) != nil {
		return ""
	}
	revision, err := sl.freeRevision(version)
	if err != nil {
		return ""
	}
	return revisionName(version, revision)
}

// freeRevision is the one after the highest of version on disk: a name that was
// pruned in between is not given to something newer.
func (sl *Slot) freeRevision(version string) (int, error) {
	names, err := sl.generationNames()
	if err != nil {
		return 0, err
	}
	next := 1
	for _, name := range names {
		if v, revision := versionOf(name); v == version {
			next = max(next, revision+1)
		}
	}
	return next, nil
}

// withRecipe returns the generation of version that has recipe, "" if none has.
// Equal bytes under another version are another generation: its name is what
// people go by.
func (sl *Slot) withRecipe(v *view, version, recipe string) string {
	if recipe == "" {
		return ""
	}
	for _, name := range v.installed() {
		// One whose manifest cannot be read is equal to nothing.
		if sl.generation(name, v.state).Version != version {
			continue
		}
		if got, err := recipeOf(sl.path(generationsName, name)); err == nil && got == recipe {
			return name
		}
	}
	return ""
}

// moveAway renames a tree. Its own mode matters: an ordinary user can move a
// directory to another parent only with u+w, for its .. changes.
func moveAway(from, to string) error {
	fi, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if fi.IsDir() && fi.Mode().Perm()&0o700 != 0o700 {
		if err := os.Chmod(from, fi.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	return os.Rename(from, to)
}
