package trusted

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Rule says whose files are trusted. The zero Rule is root's.
type Rule struct {
	UID int // of the process; root's files and its own are trusted

	// Unmapped is the owner that files seem to have whose real one has no number in
	// the user namespace of the process, root's among them; it is taken for root
	// there. 0 outside of such a namespace.
	Unmapped int
}

// Own returns the rule of this process, by its effective user.
func Own() Rule {
	r := Rule{UID: os.Geteuid()}
	// uid_map: see user_namespaces(7). The first namespace maps all numbers to
	// themselves.
	maps, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || len(bytes.Fields(maps)) == 0 || strings.Join(strings.Fields(string(maps)), " ") == "0 0 4294967295" {
		return r
	}
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return r
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && !mapped(string(maps), n) {
		r.Unmapped = n
	}
	return r
}

// mapped reports whether a uid_map has a number of its own for uid.
func mapped(maps string, uid int) bool {
	for line := range strings.Lines(maps) {
		var inside, outside, n int64
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil && int64(uid) >= inside && int64(uid) < inside+n {
			return true
		}
	}
	return false
}

// Root reports whether the process is root, for whom the directories above a file
// count too.
func (r Rule) Root() bool { return r.UID == 0 }

func (r Rule) owner(uid uint32) bool {
	return uid == 0 || int64(uid) == int64(r.UID) || r.Unmapped != 0 && int64(uid) == int64(r.Unmapped)
}

func (r Rule) group(gid uint32) bool { return gid == 0 || int64(gid) == int64(r.UID) }

// Error says why a file is not trusted, and what to do.
type Error struct {
	Name string // what was asked for
	Path string // the file, directory or symlink that is the reason
	Why  string // "belongs to the user 1000"
	Try  string // a command, or other words
	UID  int    // whose it is, where that is the reason; else -1
}

func (e *Error) Error() string {
	where := e.Path
	if e.Name != e.Path {
		where = e.Name + ": " + e.Path
	}
	return fmt.Sprintf("%s %s, and so somebody else could decide what is done here (%s)", where, e.Why, e.Try)
}

// word quotes a path for a command that a person may paste.
func word(path string) string {
	plain := strings.IndexFunc(path, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("/._+-", c)
	}) < 0
	if plain {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
