package cage

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// User is whom a cage's program runs as.
type User struct {
	UID, GID int
	Groups   []int // supplementary groups; those of the devices are added
}

// userNames are the users that a cage made by root uses, the first that there
// is: one made for it, else the one that owns nothing.
var userNames = []string{"rocm-nightly", "nobody"}

// DefaultUser returns the user that root's cages run as: rocm-nightly if the
// system has one, else nobody. The error is a NotRunError.
func DefaultUser() (*User, error) {
	for _, name := range userNames {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil && uid > 0 && gid > 0 {
			return &User{UID: uid, GID: gid}, nil
		}
	}
	return nil, &NotRunError{Reason: "there is no unprivileged user to run it as: useradd --system rocm-nightly makes one"}
}

// become decides whom the program runs as; nil is "who we are".
func (s *spec) become() error {
	if os.Geteuid() != 0 {
		s.User = nil
		return nil
	}
	if s.User == nil {
		u, err := DefaultUser()
		if err != nil {
			return err
		}
		s.User = u
	}
	if s.User.UID <= 0 || s.User.GID <= 0 || slices.Contains(s.User.Groups, 0) {
		return fmt.Errorf("cage: uid %d, gid %d, groups %v: nothing runs as root or in its group", s.User.UID, s.User.GID, s.User.Groups)
	}
	u := *s.User
	u.Groups = slices.Clone(u.Groups)
	for _, p := range s.Places {
		if p.Access == device {
			u.Groups = append(u.Groups, deviceGroups(p.Path)...)
		}
	}
	slices.Sort(u.Groups)
	u.Groups = slices.Compact(u.Groups)
	s.User = &u
	return nil
}

// deviceGroups lists the groups that may use the devices at path and that not
// everybody is: render and video, on most systems.
func deviceGroups(path string) []int {
	var gids []int
	// A directory of devices is flat but for by-path, which has links only.
	names, _ := filepath.Glob(filepath.Join(path, "*"))
	for _, name := range append(names, path) {
		var st unix.Stat_t
		if unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Mode&0o060 == 0o060 && st.Mode&0o006 != 0o006 && st.Gid != 0 {
			gids = append(gids, int(st.Gid))
		}
	}
	return gids
}
