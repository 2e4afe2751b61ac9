package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// The ways in which Reuse shares content: the config's dedup.
const (
	DedupAuto     = "auto"     // reflink where the file system can, else hard link
	DedupReflink  = "reflink"  // inodes of their own with the same extents
	DedupHardLink = "hardlink" // the same inodes
	DedupOff      = "off"
)

// ReuseOptions says how Reuse works. The zero value is DedupAuto.
type ReuseOptions struct {
	Dedup string
	Own   func(path string) bool // files of a prefix that share with nothing; nil: none
	Jobs  int                    // files at once; 0: as many as there are processors
	Event func(done int64)       // bytes of content that have been looked at; never called twice at once
}

// Reused says what a staged tree shares with the generations before it. Files
// with several names in the tree count once.
type Reused struct {
	Files      int            `json:"files"`             // that share their content now
	Bytes      int64          `json:"bytes"`             // of content that they share
	Reflinked  int            `json:"reflinked"`         // of Files: inodes of their own
	HardLinked int            `json:"hard_linked"`       // of Files: with the time of the older file
	From       []ReusedFrom   `json:"from"`              // the most bytes first
	Read       int64          `json:"read_bytes"`        // content of older files that was hashed or compared
	Left       map[string]int `json:"left,omitempty"`    // files that share nothing although an older generation lists an equal one, by the reason
	Damaged    []string       `json:"damaged,omitempty"` // older files that are not what their files.jsonl says: the first 20
	Notes      []string       `json:"notes,omitempty"`   // what else went wrong and was worked around: the first 20
	Seconds    float64        `json:"seconds"`
}

// ReusedFrom is the part of one generation in it.
type ReusedFrom struct {
	Slot       string `json:"slot"`
	Generation string `json:"generation"`
	Files      int    `json:"files"`
	Bytes      int64  `json:"bytes"`
}

// maxNotes bounds the lists of a Reused, and maxDonors how many generations
// are looked at.
const (
	maxNotes  = 20
	maxDonors = 16
)

// Donors lists the generations whose files a staged tree may share: those of
// all slots, the newest first, of one time those of its own slot first.
func (st *Staging) Donors() ([]Generation, error) {
	slots, err := st.slot.store.Slots()
	if err != nil {
		return nil, err
	}
	var donors []Generation
	for _, sl := range slots {
		gens, err := sl.Generations()
		if err != nil {
			continue // what is wrong with it is not this staging's to say
		}
		donors = append(donors, gens...)
	}
	own := func(g Generation) int {
		if slotOf(g.Dir) == st.slot.Name() {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(donors, func(a, b Generation) int {
		return cmp.Or(b.Installed.Compare(a.Installed), cmp.Compare(own(a), own(b)))
	})
	return donors[:min(len(donors), maxDonors)], nil
}

// slotOf is the name of the slot of a generation.
func slotOf(dir string) string { return filepath.Base(filepath.Dir(filepath.Dir(dir))) }

// Reuse makes regular files of the staged tree share their content with equal
// ones of donors, which are tried in the order given. Equal are files of one
// digest, size and mode, as files.jsonl of both sides says. It is the last
// step before Commit: nothing may be edited in the tree afterwards.
//
// A donor is only read, and is believed no more than necessary. Where the file
// system has reflinks, the kernel compares the two files byte for byte
// (FIDEDUPERANGE), and what is staged keeps its inode, and so its time. Else
// the donor's file is hashed, through a descriptor, and what has that
// descriptor's inode takes the place of the staged file by a rename: it keeps
// the donor's time, which the staged files.jsonl says afterwards. It must be
// of the same owner, mode and extended attributes, read-only, and not newer
// than the tree is. An inode takes the place of one inode of the tree at most,
// and several names of one are replaced together.
//
// What cannot be shared stays as it is, and is no error: an error means that
// the staged tree may not be whole, and must be thrown away.
func (st *Staging) Reuse(ctx context.Context, donors []Generation, o ReuseOptions) (*Reused, error) {
	return st.reuse(ctx, donors, o, linuxMeans)
}

func (st *Staging) reuse(ctx context.Context, donors []Generation, o ReuseOptions, by means) (*Reused, error) {
	start := time.Now()
	if st.lock == nil {
		return nil, errors.New("share files with older generations: the staging has ended")
	}
	uid := os.Geteuid()
	if owner, ok := st.slot.store.foreign(); ok { // whose the files will be, and those of older generations are
		uid = owner.uid
		if err := st.slot.store.giveTree(st.dir); err != nil {
			return nil, fmt.Errorf("share files with older generations: %w", err)
		}
	}
	r := &reuser{o: o, by: by, uid: uid, used: map[inode]bool{}, res: Reused{From: []ReusedFrom{}}}
	if err := r.ready(); err != nil {
		return nil, fmt.Errorf("share files with older generations: %w", err)
	}
	err := r.run(ctx, st.dir, donors)
	if err != nil {
		return nil, fmt.Errorf("share files with older generations: %w", err)
	}
	r.res.Seconds = time.Since(start).Seconds()
	return &r.res, nil
}

// reuser is the state of one Reuse.
type reuser struct {
	o    ReuseOptions
	by   means
	uid  int
	root *os.Root // the staged tree

	files  []manifest.File // of the staged tree
	newest int64           // the latest time of those
	todo   []*want         // what shares nothing yet, the largest first

	noReflink atomic.Bool // the file system has none
	reflinks  atomic.Bool // it has them
	swap      *swap       // nil until there is a first hard link

	mu   sync.Mutex // for what follows
	used map[inode]bool
	res  Reused
	done int64 // bytes looked at
}

// inode is the identity of a file.
type inode struct{ dev, ino uint64 }

// ready checks the options and fills in the defaults.
func (r *reuser) ready() error {
	o := &r.o
	switch o.Dedup {
	case "":
		o.Dedup = DedupAuto
	case DedupAuto, DedupReflink, DedupHardLink, DedupOff:
	default:
		return fmt.Errorf("dedup %q is none of %s, %s, %s and %s", o.Dedup, DedupAuto, DedupReflink, DedupHardLink, DedupOff)
	}
	if o.Own == nil {
		o.Own = func(string) bool { return false }
	}
	if o.Event == nil {
		o.Event = func(int64) {}
	}
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	return nil
}

// run goes through the donors and then puts the hard links in their places.
func (r *reuser) run(ctx context.Context, dir string, donors []Generation) (err error) {
	if r.o.Dedup == DedupOff || len(donors) == 0 {
		return nil
	}
	if r.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer r.root.Close()
	if err := r.list(); err != nil {
		r.note("nothing is shared: %v", err)
		return nil
	}
	defer func() { err = errors.Join(err, r.swap.end()) }()
	for _, g := range donors {
		if len(r.todo) == 0 {
			break
		}
		if err := r.donate(ctx, &g); err != nil {
			return err
		}
	}
	if err := r.finish(ctx); err != nil {
		return err
	}
	for _, w := range r.todo {
		if w.why == "" {
			continue
		}
		if r.res.Left == nil {
			r.res.Left = map[string]int{}
		}
		r.res.Left[w.why]++
	}
	r.res.From = slices.DeleteFunc(r.res.From, func(f ReusedFrom) bool { return f.Files == 0 })
	slices.SortStableFunc(r.res.From, func(a, b ReusedFrom) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return nil
}

// finish puts the hard links in their places, all or none.
func (r *reuser) finish(ctx context.Context) error {
	if r.swap == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.swap.relist(r.files); err != nil {
		r.note("files.jsonl cannot be written anew, so that no file is hard-linked: %v", err)
		r.forget()
		return nil
	}
	return r.swap.commit()
}

// forget takes back what was counted of hard links, none of which is in its
// place.
func (r *reuser) forget() {
	r.res.Files, r.res.HardLinked = r.res.Files-r.res.HardLinked, 0
	for _, w := range r.swap.wants {
		from := &r.res.From[w.from]
		from.Files--
		from.Bytes -= w.file.Size
		r.res.Bytes -= w.file.Size
		w.why = "files.jsonl could not be written"
		r.todo = append(r.todo, w)
	}
}

// note keeps what went wrong on the side.
func (r *reuser) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.res.Notes) < maxNotes {
		r.res.Notes = append(r.res.Notes, fmt.Sprintf(format, args...))
	}
}

// damaged keeps the name of a donor's file that is not what it should be.
func (r *reuser) damaged(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.res.Damaged) < maxNotes && !slices.Contains(r.res.Damaged, path) {
		r.res.Damaged = append(r.res.Damaged, path)
	}
}
