package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// readFile reads a record of at most limit bytes. A link, a pipe or a device in
// its place is damage and not followed, waited for or read: who runs this as root
// may do so on the store of somebody else.
func readFile(path string, limit int64) (b []byte, err error) {
	err = freshOnce(func() error {
		b, err = readOnce(path, limit)
		return err
	})
	return b, err
}

func readOnce(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("read %s: %w: it is a symlink", path, errDamaged)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("read %s: %w: it is no regular file", path, errDamaged)
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err // a PathError, which names the file
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("read %s: %w: longer than %d bytes", path, errDamaged, limit)
	}
	return b, nil
}

// freshOnce runs do once more where NFS says that what it had open was replaced
// on the server meanwhile: the name leads to what is there now.
func freshOnce(do func() error) error {
	err := do()
	if errors.Is(err, unix.ESTALE) {
		err = do()
	}
	return err
}

// silly reports whether all that is left of a directory are names that an NFS
// client has given to files that were deleted while somebody had them open
// (.nfs followed by hex digits): they go when they are closed.
func silly(dir string) bool {
	found := false
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return nil
		case len(e.Name()) < 8 || e.Name()[:4] != ".nfs":
			return errors.New("something else")
		}
		found = true
		return nil
	})
	return err == nil && found
}
