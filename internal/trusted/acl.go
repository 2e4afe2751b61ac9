package trusted

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// The attribute of an access control list, as the kernel shows it: a version and
// entries of tag, permissions and number, little-endian. See
// include/uapi/linux/posix_acl_xattr.h.
const (
	aclName    = "system.posix_acl_access"
	aclVersion = 2
	aclEntry   = 8
	maxACL     = 64 << 10 // the kernel's bound of any attribute

	aclUser  = 0x02 // a named user
	aclGroup = 0x08 // a named group
	aclObj   = 0x04 // the file's group
	aclMask  = 0x10
	aclOther = 0x20
	aclWrite = 0x02
)

var errACL = errors.New("its access control list cannot be read")

// writers says who beside the owner may write by an access control list.
type writers struct {
	users, groups []uint32
	group, other  bool
}

// parseACL reads the attribute.
func parseACL(b []byte) (writers, error) {
	if len(b) < 4 || (len(b)-4)%aclEntry != 0 || binary.LittleEndian.Uint32(b) != aclVersion {
		return writers{}, errACL
	}
	var w writers
	mask := uint16(aclWrite) // an ACL of the three plain entries has none
	for e := b[4:]; len(e) > 0; e = e[aclEntry:] {
		tag, perm, id := binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:]), binary.LittleEndian.Uint32(e[4:])
		if tag == aclMask {
			mask = perm
		}
		if perm&aclWrite == 0 {
			continue
		}
		switch tag {
		case aclUser:
			w.users = append(w.users, id)
		case aclGroup:
			w.groups = append(w.groups, id)
		case aclObj:
			w.group = true
		case aclOther:
			w.other = true
		}
	}
	if mask&aclWrite == 0 { // it bounds all but the owner and the others
		w = writers{other: w.other}
	}
	return w, nil
}

// readACL returns the attribute, nil where there is none. get is a getxattr.
func readACL(get func(name string, dest []byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 1024)
	for {
		n, err := get(aclName, buf)
		switch {
		case errors.Is(err, unix.ERANGE) && len(buf) < maxACL:
			buf = make([]byte, maxACL)
		case errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil, nil
		case err != nil:
			return nil, errors.Join(errACL, err)
		default:
			return buf[:n], nil
		}
	}
}
