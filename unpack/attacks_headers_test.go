package unpack

import (
	"archive/tar"
	"fmt"
	"strings"
)

// kindAttacks are entries that are no file, directory or link.
func kindAttacks() []attack {
	kind := func(k byte) string { return head{name: "a", kind: k, body: "x"}.String() }
	all := []attack{
		refused("character device", "a device or FIFO", head{name: "null", kind: '3', edit: device(1, 3)}.String()),
		refused("block device", "a device or FIFO", head{name: "disk", kind: '4', edit: device(8, 0)}.String()),
		refused("FIFO", "a device or FIFO", head{name: "a", kind: '6'}.String()),
		taken("contiguous file", "a: x", kind('7')),
		taken("file of old tar", "a: x", kind(oldKind)),
	}
	for _, k := range []struct {
		name string
		kind byte
	}{
		{"socket", 's'}, {"ACL of Solaris", 'A'}, {"attributes of Solaris", 'E'}, {"extended header of Solaris", 'X'}, {"dump of a directory", 'D'},
		{"inode alone", 'I'}, {"continued file", 'M'}, {"renaming of old GNU tar", 'N'}, {"volume label", 'V'}, {"kind that nobody knows", 'Z'}, {"kind above ASCII", 0xff},
	} {
		all = append(all, refused(k.name, "unknown type", kind(k.kind)))
	}
	return all
}

func device(major, minor int) func([]byte) {
	return func(b []byte) {
		copy(b[329:], fmt.Sprintf("%07o\x00", major))
		copy(b[337:], fmt.Sprintf("%07o\x00", minor))
	}
}

// metadataAttacks give files more rights, owners and times than they can have.
func metadataAttacks() []attack {
	mode := func(name, m string) string { return head{name: name, mode: m, body: "x"}.String() }
	attr := func(record string) string { return pax('x', record) + aFile("a", "x") }
	at := func(mtime string) string { return head{name: "a", mtime: mtime, body: "x"}.String() }
	return []attack{
		taken("setuid", "a*: x", mode("a", "0004755")),
		taken("setgid", "a*: x", mode("a", "0002755")),
		taken("sticky", "a: x", mode("a", "0001644")),
		taken("all bits of a file", "a*: x", mode("a", "0007777")),
		taken("all bits of a directory", "a/; a/b: x", head{name: "a/", kind: '5', mode: "0007777"}.String(), aFile("a/b", "x")),
		taken("file that nobody may read", "a: x", mode("a", "0000000")),
		taken("directory that nobody may enter", "a/; a/b: x", head{name: "a/", kind: '5', mode: "0000000"}.String(), aFile("a/b", "x")),
		taken("root that nobody may enter", "b: x", head{name: "./", kind: '5', mode: "0000000"}.String(), aFile("./b", "x")),
		taken("root that everybody may write", "", head{name: "./", kind: '5', mode: "0007777"}.String()),
		taken("negative mode", "a*: x", mode("a", base256(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))),
		taken("setuid link", "a -> b", head{name: "a", kind: '2', link: "b", mode: "0004777"}.String()),
		taken("capability", "a: x", attr("SCHILY.xattr.security.capability=\x01\x00\x00\x02\xff\xff\xff\xff")),
		taken("user attribute", "a: x", attr("SCHILY.xattr.user.origin=x")),
		taken("attribute of a name of a kilobyte", "a: x", attr("SCHILY.xattr."+strings.Repeat("n", 1000)+"=x")),
		taken("attribute of libarchive", "a: x", attr("LIBARCHIVE.xattr.user.origin=eA==")),
		taken("label of SELinux", "a: x", attr("RHT.security.selinux=system_u:object_r:shadow_t:s0")),
		taken("ACL", "a: x", attr("SCHILY.acl.access=user::rwx,user:nobody:rwx,group::rwx,mask::rwx,other::rwx")),
		taken("ACL in its binary form", "a: x", attr("SCHILY.xattr.system.posix_acl_access=\x02\x00\x00\x00")),
		taken("default ACL of a directory", "d/; d/a: x", pax('x', "SCHILY.acl.default=user::rwx,group::rwx,other::rwx"), aDir("d/"), aFile("d/a", "x")),
		taken("ACL of a link", "a -> b; b: x", pax('x', "SCHILY.acl.access=user::rwx,other::rwx"), aSym("a", "b"), aFile("b", "x")),
		taken("file flags", "a: x", attr("SCHILY.fflags=immutable,append")),
		taken("owner", "a: x", head{name: "a", body: "x", edit: func(b []byte) { copy(b[108:], "0000041\x000000041\x00"); copy(b[265:], "www-data") }}.String()),
		taken("owner beyond any", "a: x", head{name: "a", body: "x", edit: func(b []byte) { copy(b[108:], base256(8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)) }}.String()),
		taken("owner with a terminal escape", "a: x", head{name: "a", body: "x", edit: func(b []byte) { copy(b[265:], "root\n\x1b[2J\xff") }}.String()),
		damaged("owner that is no number", attr("uid=root")),
		taken("time before 1970", "a: x", at(base256(12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe))),
		taken("time of the year 9999", "a: x", pax('x', "mtime=253402300799.999999999"), aFile("a", "x")),
		taken("last time of 64 bits", "a: x", at(base256(12, 0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))),
		taken("first time of 64 bits", "a: x", attr("mtime=-9223372036854775808.999999999")),
		taken("times of many digits", "a: x", attr("mtime=1."+strings.Repeat("9", 1000))),
		damaged("time that is no number", attr("mtime=now")),
		damaged("time over 64 bits", at(base256(12, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))),
	}
}

// headerAttacks are headers that are wrong, or that contradict each other.
func headerAttacks() []attack {
	ext := func(body string) string { return head{name: "pax", kind: 'x', body: body}.String() }
	gib2 := "20000000000" // 2 GiB in octal
	mib2 := strings.Repeat("\x00", 2<<20)
	tooLong := func(name string, parts ...string) attack {
		return attack{name: name, is: tar.ErrFieldTooLong, says: "too long", stream: true, tar: tarball(parts...)}
	}
	return []attack{
		damaged("wrong checksum", head{name: "a", body: "x", sum: "000000\x00 "}.String()),
		damaged("checksum that is no number", head{name: "a", body: "x", sum: "none"}.String()),
		damaged("noise in place of a header", strings.Repeat("noise...", 64)),
		damaged("header behind a block of zeros", strings.Repeat("\x00", 512), aFile("a", "x")),
		taken("name in two parts", "a/; a/b: x", head{name: "b", prefix: "a", body: "x"}.String()),
		refused("name in two parts that leads out", `".." in the name`, head{name: "victim", prefix: "..", body: "x"}.String()),
		refused("name in two parts that is absolute", "absolute name", head{name: "victim", prefix: "/etc", body: "x"}.String()),
		refused("name in two parts in a header of GNU tar", `".." in the name`, head{name: "victim", prefix: "..", magic: gnuMagic, body: "x"}.String()),

		refused("pax name that leads out", `".." in the name`, pax('x', "path=../victim"), aFile("a", "x")),
		refused("pax name that is empty", "an extended header with an empty path", pax('x', "path="), aFile("a", "x")),
		refused("pax link target that is empty", "an extended header with an empty linkpath", pax('x', "linkpath="), aSym("a", "b")),
		taken("pax name twice", "c: x", pax('x', "path=b", "path=c"), aFile("a", "x")),
		refused("pax name twice, the second leads out", `".." in the name`, pax('x', "path=b", "path=../victim"), aFile("a", "x")),
		taken("pax header twice", "c: x", pax('x', "path=b"), pax('x', "path=c"), aFile("a", "x")),
		taken("pax header for one entry only", "a: x; b: y", pax('x', "path=b"), aFile("c", "y"), aFile("a", "x")),
		taken("pax header before the end", "", pax('x', "path=../victim")),
		refused("pax name and a GNU long name", "it has a second name", pax('x', "path=safe"), long('L', "other"), aFile("a", "x")),
		refused("pax link target and a GNU long one", "it has a second link target", pax('x', "linkpath=safe"), long('K', "other"), aSym("a", "b")),
		refused("GNU long name that leads out", `".." in the name`, long('L', "a/../../victim"), aFile("a", "x")),
		taken("GNU long name twice", "c: x", long('L', "b"), long('L', "c"), aFile("a", "x")),
		taken("GNU long name that is empty", "a: x", long('L', ""), aFile("a", "x")),
		damaged("pax record longer than its header", ext("99 path=a\n")),
		damaged("pax record of no length", ext("0 path=a\n")),
		damaged("pax record of negative length", ext("-9 path=a\n")),
		damaged("pax record of a length over 64 bits", ext("99999999999999999999 path=a\n")),
		damaged("pax record without an end", ext("9 path=ab")),
		damaged("pax record without a value", ext("7 path\n")),
		damaged("pax record without a key", ext("5 =a\n")),
		damaged("NUL in a pax key", pax('x', "pa\x00th=a"), aFile("a", "x")),
		endsEarly("pax header that is cut", head{name: "pax", kind: 'x', size: "00000001000", body: "9 path=a\n"}.String()[:600]),
		endsEarly("pax header of 2 GiB that is cut", head{name: "pax", kind: 'x', size: gib2, body: "9 path=a\n"}.String()),
		tooLong("pax header of 2 GiB", head{name: "pax", kind: 'x', size: gib2, body: "9 path=a\n"}.String(), mib2),
		tooLong("pax header of 2 MiB", pax('x', "comment="+strings.Repeat("x", 2<<20)), aFile("a", "x")),
		tooLong("GNU long name of 2 GiB", head{name: "long", kind: 'L', magic: gnuMagic, size: gib2}.String(), mib2),
		endsEarly("long name before the end of the stream", long('L', "b")),
		endsEarly("one block of zeros at the end", aFile("a", "x"), strings.Repeat("\x00", 512)),
		endsEarly("no end", aFile("a", "x")),

		taken("global header with a comment", "a: x", pax('g', "comment=0123abcd"), aFile("a", "x")),
		taken("global header with owner, time and attributes", "a: x", pax('g', "uid=0", "uname=root", "mtime=1e9", "SCHILY.xattr.user.x=y", "hdrcharset=BINARY"), aFile("a", "x")),
		refused("global header with a name", "a global header that sets", pax('g', "path=../victim"), aFile("a", "x")),
		refused("global header with a link target", "a global header that sets", pax('g', "linkpath=../beside"), aSym("a", "b")),
		refused("global header with a size", "a global header that sets", pax('g', "size=512"), aFile("a", "x")),
		refused("global header with a sparse map", "a global header that sets", pax('g', "GNU.sparse.map=0,1"), aFile("a", "x")),
	}
}
