package doctor

import (
	"encoding/binary"
	"io/fs"
)

// aclAttr is where Linux keeps the access ACL of a file.
const aclAttr = "system.posix_acl_access"

// The tags of an entry (include/uapi/linux/posix_acl.h).
const (
	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20
)

const (
	aclVersion  = 2
	maxACL      = 4096 // entries
	readWrite   = 6    // what a GPU is opened with
	aclEntryLen = 8
)

// aclEntry is one entry of an ACL.
type aclEntry struct {
	tag, perm uint16
	id        int
}

// parseACL reads the attribute (include/uapi/linux/posix_acl_xattr.h): a version,
// then entries of tag, permissions and id, all little-endian. ok is false for what
// is none.
func parseACL(b []byte) (acl []aclEntry, ok bool) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != aclVersion || (len(b)-4)%aclEntryLen != 0 || len(b) > maxACL*aclEntryLen {
		return nil, false
	}
	for b = b[4:]; len(b) > 0; b = b[aclEntryLen:] {
		acl = append(acl, aclEntry{binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:]), int(binary.LittleEndian.Uint32(b[4:]))})
	}
	return acl, true
}

// modeACL is what permission bits say, as an ACL.
func modeACL(mode fs.FileMode) []aclEntry {
	p := uint16(mode.Perm())
	return []aclEntry{{aclUserObj, p >> 6 & 7, 0}, {aclGroupObj, p >> 3 & 7, 0}, {aclOther, p & 7, 0}}
}

// allowed reports whether a user may open a file for reading and writing, by the
// algorithm of acl(5), and which entry decided: "" for none.
func allowed(acl []aclEntry, ownerUID, ownerGID, uid int, groups map[int]bool) (ok bool, by string) {
	if uid == 0 {
		return true, "root"
	}
	mask := uint16(7)
	for _, e := range acl {
		if e.tag == aclMask {
			mask = e.perm
		}
	}
	for _, e := range acl {
		switch {
		case e.tag == aclUserObj && uid == ownerUID:
			return e.perm&readWrite == readWrite, "owner"
		case e.tag == aclUser && uid == e.id && uid != ownerUID:
			return e.perm&mask&readWrite == readWrite, "ACL"
		}
	}
	in := false
	for _, e := range acl {
		if e.tag == aclGroupObj && groups[ownerGID] || e.tag == aclGroup && groups[e.id] {
			if in = true; e.perm&mask&readWrite == readWrite {
				return true, "group"
			}
		}
	}
	for _, e := range acl {
		if e.tag == aclOther && !in {
			return e.perm&readWrite == readWrite, "everybody"
		}
	}
	return false, ""
}
