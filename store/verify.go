package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"
)

// VerifyOptions says how Verify works. The zero value reads every file.
type VerifyOptions struct {
	// Fast reads only files whose size, time or inode is not as the seal of the
	// generation says; where there is no seal, those whose size or time is not as
	// files.jsonl says.
	Fast  bool
	Jobs  int                                            // files at once; 0: what suits the machine
	Event func(done, total int64)                        // bytes of content looked at; never called twice at once
	Next  func(g *Generation, files int)                 // a generation is begun; nil tells nobody
	read  func(fd int, b []byte, off int64) (int, error) // tests read otherwise
}

// The kinds of damage, in the order in which Damage.What lists them.
const (
	DamageMissing    = "missing"    // it is not there
	DamageKind       = "kind"       // something else is there: a directory, a link, a device
	DamageUnreadable = "unreadable" // the disk, or a permission, refuses it
	DamageSize       = "size"       // it is longer or shorter
	DamageContent    = "content"    // it has other bytes
	DamageLink       = "link"       // the symlink leads elsewhere
	DamageHardLink   = "hard-link"  // it is not the same file as the name that it shares an inode with
	DamageMode       = "mode"       // other permissions, setuid and setgid among them
	DamageOwner      = "owner"      // another user's, neither root's nor that of who owns the directory of the generations
	DamageCapability = "capability" // it has file capabilities, which nothing of ours has
	DamageTime       = "time"       // another modification time
	DamageList       = "list"       // manifest.json or files.jsonl contradicts itself or the other
)

// Damage is one entry of a generation that is not as it was installed.
type Damage struct {
	Path   string   `json:"path"`             // relative to the generation; "." is its own directory
	What   []string `json:"what"`             // one or more of the Damage constants
	Detail string   `json:"detail"`           // in words
	Shared []string `json:"shared,omitempty"` // SLOT/GENERATION/path: other names of a damaged inode, which are damaged with it
}

// The ways in which a generation was compared.
const (
	MethodFull     = "full"     // every file was read
	MethodSeal     = "seal"     // by size, time and inode, as the seal says; what differs was read
	MethodManifest = "manifest" // by size and time, as files.jsonl says, for want of a seal; what differs was read
)

// What became of the seal of a generation.
const (
	SealFresh      = "fresh"      // it says what is there
	SealNone       = "none"       // there is none, and Fast makes none
	SealUnwritable = "unwritable" // it could not be written: another user's store, a full disk
	SealKept       = "kept"       // the lists are not those that it is of: it was left as it is
)

// Verification is what became of one generation.
type Verification struct {
	Slot       string   `json:"slot"`
	Generation string   `json:"generation"`
	Prefix     string   `json:"prefix"`
	Active     bool     `json:"active"`
	Method     string   `json:"method"` // full, seal or manifest
	Seal       string   `json:"seal"`   // one of the Seal constants
	Files      int      `json:"files"`  // regular files that are listed, each name
	Bytes      int64    `json:"bytes"`  // of their content, each inode once
	Read       int64    `json:"read_bytes"`
	Damage     []Damage `json:"damage"` // by path
	Extra      []string `json:"extra"`  // entries that are not listed, by path, at most 1,000; those of directories that are not listed are not looked at
	ExtraMore  int      `json:"extra_more,omitempty"`
	Gone       bool     `json:"gone,omitempty"` // it was removed meanwhile: nothing is said of it
	Seconds    float64  `json:"seconds"`

	gen    Generation
	top    item
	lists  [3]item     // manifest.json, files.jsonl and omitted.jsonl
	sealed [3][32]byte // what they should be; zero where nobody knows
	list   *listing    // kept where there is damage
	seal   *seal       // what was found, to be compared with later
}

// OK reports whether nothing is damaged.
func (v *Verification) OK() bool { return len(v.Damage) == 0 }

// maxExtra bounds Verification.Extra.
const maxExtra = 1000

// VerifyTargets lists the generations that a slot's name and a version mean: those
// of every slot, of one, or one. The errors are those of FindSlot and Generation.
func (s *Store) VerifyTargets(slot, version string) ([]Generation, error) {
	if slot == "" && version == "" {
		return s.everyGeneration()
	}
	sl, err := s.FindSlot(slot)
	if err != nil {
		return nil, err
	}
	if version != "" {
		g, err := sl.Generation(version)
		if err != nil {
			return nil, err
		}
		return []Generation{*g}, nil
	}
	gens, err := sl.Generations()
	if err == nil && len(gens) == 0 {
		err = &GenerationError{Slot: sl.Name()}
	}
	return gens, err
}

func (s *Store) everyGeneration() ([]Generation, error) {
	slots, err := s.Slots()
	if err != nil {
		return nil, err
	}
	var all []Generation
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			return nil, err
		}
		all = append(all, gens...)
	}
	if len(all) == 0 {
		return nil, &SlotError{}
	}
	return all, nil
}

// Verify compares generations with what they list: kind, mode, size, digest and
// time of every file, link targets, hard links, what is missing and what is there
// without being listed. It takes no lock and changes nothing but the seals beside
// the generations, which it brings up to date where this user may. A file that
// cannot be read is named, and the rest goes on. A generation that is removed
// meanwhile is no error. Names of one inode are read once, in all of gens together.
func (s *Store) Verify(ctx context.Context, gens []Generation, o VerifyOptions) ([]*Verification, error) {
	p := &prover{store: s, o: o, known: map[inode]proof{}}
	p.ready()
	all := make([]*Verification, 0, len(gens))
	for i := range gens {
		v, err := p.verify(ctx, &gens[i], nil)
		if err != nil {
			return all, fmt.Errorf("verify %s: %w", gens[i].Name, err)
		}
		all = append(all, v)
	}
	for _, v := range all {
		if err := s.nameShared(ctx, v); err != nil {
			return all, fmt.Errorf("verify %s: %w", v.Generation, err)
		}
	}
	return all, nil
}

// prover is the state of one Verify.
type prover struct {
	store    *Store
	o        VerifyOptions
	unsealed bool // no seal is written: files were not read, and have none

	mu    sync.Mutex // for what follows
	known map[inode]proof
	done  int64
	total int64
	told  int64 // of done, to Event
}

// proof is the digest of an inode that several names have, and by what it is
// told that the inode has not changed since.
type proof struct {
	sum          [32]byte
	size         int64
	mtime, ctime int64 // nanoseconds
}

// maxProofs bounds prover.known.
const maxProofs = 4 << 20

func (p *prover) ready() {
	if p.o.Jobs <= 0 {
		// More than there are processors: some wait for the disk.
		p.o.Jobs = min(max(8, 4*runtime.GOMAXPROCS(0)), 32)
	}
	if p.o.Event == nil {
		p.o.Event = func(int64, int64) {}
	}
	if p.o.Next == nil {
		p.o.Next = func(*Generation, int) {}
	}
	if p.o.read == nil {
		p.o.read = pread
	}
}

// verify compares one generation. with is the seal to compare with, in place of
// that on disk.
func (p *prover) verify(ctx context.Context, g *Generation, with *seal) (*Verification, error) {
	start := time.Now()
	v := &Verification{Slot: slotOf(g.Dir), Generation: g.Name, Prefix: g.Dir, Active: g.Active,
		Method: MethodFull, Damage: []Damage{}, Extra: []string{}, gen: *g}
	c, err := p.open(g)
	if err == nil {
		defer c.close()
		err = c.run(ctx, v, with)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if p.gone(g, c) {
		v.Gone, v.Damage, v.Extra, v.list, v.seal = true, []Damage{}, []string{}, nil, nil
		_ = p.store.dropSeal(g) // one that was written while it went
	} else if err != nil {
		v.Seal = SealNone
		v.Damage = append(v.Damage, Damage{Path: ".", What: []string{DamageUnreadable}, Detail: plainly(err).Error()})
	}
	v.Seconds = time.Since(start).Seconds()
	return v, nil
}

// gone reports whether a generation has been removed.
func (p *prover) gone(g *Generation, c *check) bool {
	fi, err := lstat(g.Dir)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	return c != nil && c.dir.Ino != fi.Ino
}

// eventStep is how many bytes are looked at between two events.
const eventStep = 8 << 20

// moved counts content that has been looked at.
func (p *prover) moved(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	if p.done-p.told >= eventStep || p.done == p.total {
		p.told = p.done
		p.o.Event(p.done, p.total)
	}
}
