package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// Two nights are installed, one after the other, and the user goes back.
func Example() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// active: 10.2.0a20260930
	// active: 10.2.0a20261001
	// from 10.2.0a20261001 back to 10.2.0a20260930
	// is 10.2.0a20261001 skipped? true
	// is 10.2.0a20261002 skipped? false
}

func run(ctx context.Context) error {
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	s, err := store.Open(root)
	if err != nil {
		return err
	}
	lock, err := s.LockRun(ctx, "update")
	if err != nil {
		return err // says who is at work
	}
	defer lock.Release()
	slot := s.Slot("nightly", "gfx1151")
	for _, version := range []string{"10.2.0a20260930", "10.2.0a20261001"} {
		if err := install(ctx, slot, version); err != nil {
			return err
		}
	}
	from, to, err := slot.Rollback(ctx)
	if err != nil {
		return err
	}
	fmt.Println("from", from.Name, "back to", to.Name)
	for _, version := range []string{"10.2.0a20261001", "10.2.0a20261002"} {
		fmt.Printf("is %s skipped? %v\n", version, slot.Skip(version))
	}
	return nil
}

func install(ctx context.Context, slot *store.Slot, version string) error {
	staging, err := slot.Stage(ctx)
	if err != nil {
		return err
	}
	defer staging.Abort() // does nothing after Commit
	if err := os.WriteFile(filepath.Join(staging.Dir(), "hello"), []byte(version), 0o444); err != nil {
		return err
	}
	donors, err := staging.Donors()
	if err != nil {
		return err
	}
	// Here files.jsonl would tell which files are equal to those of donors.
	if _, err := staging.Reuse(ctx, donors, store.ReuseOptions{}); err != nil {
		return err
	}
	generation, err := staging.Commit(version)
	if err != nil {
		return err
	}
	if err := slot.Activate(ctx, generation.Name, "update"); err != nil {
		return err
	}
	fmt.Println("active:", generation.Name)
	return nil
}

// A build leases what is active: an update in the middle of it changes nothing,
// and Prune leaves it alone.
func ExampleSlot_Lease() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "rocm-nightly-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	s, err := store.Open(root)
	if err != nil {
		log.Fatal(err)
	}
	slot := s.Slot("nightly", "gfx1151")
	if err := install(ctx, slot, "10.2.0a20260930"); err != nil {
		log.Fatal(err)
	}
	_, built, err := slot.Lease(ctx, "", os.Getpid())
	if err != nil {
		log.Fatal(err)
	}
	for _, version := range []string{"10.2.0a20261001", "10.2.0a20261002", "10.2.0a20261003"} {
		if err := install(ctx, slot, version); err != nil {
			log.Fatal(err)
		}
	}
	pruned, err := slot.Prune(ctx, store.Keep{Last: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("built with", built.Name)
	fmt.Println("removed", pruned.Removed)
	for _, k := range pruned.Kept {
		fmt.Println(k.Generation, "stays:", k.Why, k.Uses.By[0].How)
	}
	// Output:
	// active: 10.2.0a20260930
	// active: 10.2.0a20261001
	// active: 10.2.0a20261002
	// active: 10.2.0a20261003
	// built with 10.2.0a20260930
	// removed [10.2.0a20261001]
	// 10.2.0a20260930 stays: in use lease
}
