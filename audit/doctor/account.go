package doctor

import (
	"strconv"
	"strings"
)

// account is a line of passwd(5).
type account struct {
	name     string
	uid, gid int
	home     string
}

func parseAccounts(text string) []account {
	var all []account
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 6 {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 == nil && err2 == nil && len(all) < maxNames {
			all = append(all, account{f[0], uid, gid, f[5]})
		}
	}
	return all
}

// group is a line of group(5).
type group struct {
	name    string
	gid     int
	members []string
}

func parseGroups(text string) []group {
	var all []group
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		if gid, err := strconv.Atoi(f[2]); err == nil && len(all) < maxNames {
			all = append(all, group{f[0], gid, strings.Split(f[3], ",")})
		}
	}
	return all
}

// groups are those of /etc/group, then those that systems replaced as a whole
// keep in /usr/lib/group (nss-altfiles).
func (x *exam) groups() []group {
	return append(parseGroups(x.text("/etc/group")), parseGroups(x.text("/usr/lib/group"))...)
}

// groupsOf are the groups that a user has at the next login, as /etc/group says.
func groupsOf(all []group, a account) map[int]bool {
	ids := map[int]bool{}
	if a.gid >= 0 {
		ids[a.gid] = true
	}
	for _, g := range all {
		for _, m := range g.members {
			if a.name != "" && m == a.name {
				ids[g.gid] = true
			}
		}
	}
	return ids
}

// nameOf is the name of a group, "" if it has none here.
func nameOf(all []group, gid int) string {
	for _, g := range all {
		if g.gid == gid {
			return g.name
		}
	}
	return ""
}
