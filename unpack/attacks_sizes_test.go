package unpack

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
)

// errOther is for errors of other packages that have no name to match.
var errOther = errors.New("some other error")

// sizeAttacks lie about how large something is.
func sizeAttacks() []attack {
	sized := func(size string) string { return head{name: "a", size: size, body: "x"}.String() }
	inner := aFile("hidden", "x")
	all := bytes.Repeat([]byte{0xff}, 11)
	return []attack{
		damaged("negative size", sized(base256(12, 0xff, all...))),
		damaged("size over 64 bits", sized(base256(12, 0x80, all...))),
		damaged("size of 64 bits", sized(base256(12, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))),
		damaged("size that is no octal number", sized("00000000089")),
		damaged("negative pax size", pax('x', "size=-1"), aFile("a", "x")),
		damaged("pax size over 64 bits", pax('x', "size=9223372036854775808"), aFile("a", "x")),
		damaged("pax size that is no number", pax('x', "size=1e3"), aFile("a", "x")),
		refused("size of 63 bits", "unpack.max_bytes", sized(base256(12, 0x80, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))),
		refused("pax size of 63 bits", "unpack.max_bytes", pax('x', "size=9223372036854775807"), aFile("a", "x")),
		{name: "size beyond the stream", is: ErrTruncated, says: `unpack "a"`, tar: sized("00020000000")},
		{name: "size beyond the stream, twelve digits", is: ErrTruncated, says: `unpack "a"`, tar: sized("777777777777")},
		taken("pax size over that of the header", "a: 1024 bytes", pax('x', "size=1024"), head{name: "a", size: "00000000000", body: inner}.String()),
		taken("pax size under that of the header", "a: nothing; hidden: x", pax('x', "size=0"), head{name: "a", body: inner}.String()),
		refused("directory with content", "a directory or link of 1024 bytes", head{name: "a/", kind: '5', body: inner}.String()),
		refused("directory of old tar with content", "a directory or link of 1024 bytes", head{name: "a/", kind: oldKind, body: inner}.String()),
		refused("directory with a pax size", "a directory or link of 512 bytes", pax('x', "size=512"), aDir("a/")),
		refused("directory of negative size", "a directory or link of -1 bytes", head{name: "a/", kind: '5', size: base256(12, 0xff, all...)}.String()),
		refused("link with content", "a directory or link of 1024 bytes", head{name: "a", kind: '2', link: "b", body: inner}.String()),
		refused("hard link with content", "a directory or link of 1024 bytes", aFile("b", "x"), head{name: "a", kind: '1', link: "b", body: inner}.String()),
	}
}

// sparse is a sparse file of GNU tar's version 0.1.
func sparse(size, count, list, data string) string {
	return pax('x', "GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=a", "GNU.sparse.size="+size, "GNU.sparse.numblocks="+count, "GNU.sparse.map="+list) + aFile("GNUSparse", data)
}

// sparse10 is one of version 1.0, in which the map stands before the data.
func sparse10(size, list, data string) string {
	list += strings.Repeat("\x00", -len(list)&511)
	return pax('x', "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=a", "GNU.sparse.realsize="+size) + aFile("GNUSparse", list+data)
}

// oldSparse is one of the format before pax. extended says that another block
// of the map follows.
func oldSparse(size string, extended bool, data string, list ...string) string {
	return head{name: "a", kind: 'S', magic: gnuMagic, body: data, edit: func(b []byte) {
		for i, field := range list {
			copy(b[386+12*i:], field)
		}
		if extended {
			b[482] = 1
		}
		copy(b[483:], size)
	}}.String()
}

func sparseAttacks() []attack {
	holes := "a: abc" + strings.Repeat("\x00", 7) + "def" + strings.Repeat("\x00", 7)
	other := func(name, says string, stream bool, parts ...string) attack {
		return attack{name: name, is: errOther, says: says, stream: stream, tar: tarball(parts...)}
	}
	block := strings.Repeat("\x00", 504) + "\x01" + strings.Repeat("\x00", 7) // of a map: empty, and another follows
	return []attack{
		taken("sparse 0.0", holes, pax('x', "GNU.sparse.size=20", "GNU.sparse.numblocks=2", "GNU.sparse.offset=0", "GNU.sparse.numbytes=3", "GNU.sparse.offset=10", "GNU.sparse.numbytes=3"), aFile("a", "abcdef")),
		taken("sparse 0.1", holes, sparse("20", "2", "0,3,10,3", "abcdef")),
		taken("sparse 1.0", holes, sparse10("20", "2\n0\n3\n10\n3\n", "abcdef")),
		taken("sparse of old GNU tar", holes, oldSparse("00000000024", false, "abcdef", "00000000000", "00000000003", "00000000012", "00000000003")),
		refused("sparse name that leads out", `".." in the name`, pax('x', "GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=../victim", "GNU.sparse.size=1", "GNU.sparse.numblocks=1", "GNU.sparse.map=0,1"), aFile("a", "x")),
		damaged("sparse map that overlaps", sparse("20", "2", "0,5,3,3", "abcdefgh")),
		damaged("sparse map that descends", sparse("20", "2", "10,3,0,3", "abcdef")),
		damaged("sparse map beyond the file", sparse("20", "1", "18,3", "abc")),
		damaged("sparse map over 64 bits", sparse("20", "1", "9223372036854775807,9223372036854775807", "x")),
		damaged("sparse map of negative numbers", sparse("20", "1", "-3,3", "abc")),
		damaged("sparse map of fewer parts than it says", sparse("20", "3", "0,3", "abc")),
		damaged("sparse map of 2^62 parts", sparse("20", "4611686018427387904", "0,3", "abc")),
		damaged("sparse map without numbers", sparse("20", "1", "a,b", "abc")),
		damaged("sparse 0.0 with a part alone", pax('x', "GNU.sparse.size=20", "GNU.sparse.numblocks=1", "GNU.sparse.offset=0", "GNU.sparse.offset=3"), aFile("a", "abc")),
		damaged("sparse file of negative size", sparse("-1", "0", "", "")),
		damaged("sparse file of a size over 64 bits", sparse("9223372036854775808", "1", "0,1", "x")),
		refused("sparse file of 63 bits", "unpack.max_bytes", sparse("9223372036854775807", "1", "0,1", "x")),
		damaged("sparse 1.0 map of 2^62 parts", sparse10("20", "4611686018427387904\n", "x")),
		other("sparse 1.0 map of a million parts", "sparse map too long", true, sparse10("20", "1000000\n"+strings.Repeat("0\n0\n", 300_000), "x")),
		other("sparse map of old GNU tar that goes on", "sparse map too long", true, oldSparse("00000000024", true, "", "00000000000", "00000000000"), strings.Repeat(block, 2100)),
		damaged("sparse map of old GNU tar that overlaps", oldSparse("00000000024", false, "abcdef", "00000000000", "00000000003", "00000000002", "00000000003")),
		damaged("sparse file of star", head{name: "a", kind: 'S', body: "x"}.String()),
		other("sparse file with less data than its map", "non-existent data", false, sparse("20", "1", "0,9", "abc")),
		other("sparse file with more data than its map", "unreferenced data", false, sparse("20", "1", "0,3", "abcdef")),
		other("sparse file of nothing with data", "unreferenced data", false, sparse10("0", "0\n", "abc")),
		refused("sparse file of an unknown version", "a sparse file of an unknown kind", pax('x', "GNU.sparse.major=2", "GNU.sparse.minor=0", "GNU.sparse.name=b"), aFile("a", "x")),
		refused("sparse file without a map", "a sparse file of an unknown kind", pax('x', "GNU.sparse.name=b", "GNU.sparse.realsize=9"), aFile("a", "x")),
		damaged("sparse directory", pax('x', "GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.size=1", "GNU.sparse.numblocks=1", "GNU.sparse.map=0,1"), aDir("a/")),
	}
}

// bombAttacks want more memory, disk or time than they have bytes.
func bombAttacks() []attack {
	bomb := func(name, says string, l Limits, parts ...string) attack {
		return attack{name: name, is: ErrRefused, says: says, limits: l, tar: tarball(parts...)}
	}
	var names, numbered strings.Builder
	for i := range 450 {
		names.WriteString(aSym(fmt.Sprint(i), strings.Repeat(strings.Repeat("n", 240)+"/", 12)))
	}
	for i := range 20 {
		numbered.WriteString(aFile(fmt.Sprint(i), ""))
	}
	zeros := attack{name: "bomb of zeros", is: ErrRefused, says: "unpack.max_ratio", limits: Limits{ratioFrom: 1 << 20}}
	zeros.gz = squeezed(tarball(aFile("a", string(make([]byte, 4<<20)))))
	headers := bomb("bomb of extended headers", "far more than the entries need", Limits{MaxBytes: 100, MaxEntries: 5},
		strings.Repeat(pax('x', "comment="+strings.Repeat("x", 1<<20-100)), 3), aFile("a", "x"))
	headers.stream = true
	return []attack{
		bomb("more entries than allowed", "unpack.max_entries", Limits{MaxEntries: 19}, numbered.String()),
		bomb("more bytes than allowed", "unpack.max_bytes", Limits{MaxBytes: 5}, aFile("a", "123"), aFile("b", "456")),
		bomb("more directories than allowed", "implied directories counted", Limits{MaxEntries: 100}, aFile(strings.Repeat("d/", 50)+"a", ""), aFile(strings.Repeat("e/", 50)+"a", "")),
		bomb("bomb of names", "names and link targets", Limits{MaxEntries: 450}, names.String()),
		bomb("bomb of holes", "unpack.max_ratio", Limits{ratioFrom: 1 << 20}, sparse("8589934592", "1", "8589934591,1", "x")),
		bomb("bomb of global headers", "unpack.max_entries", Limits{MaxEntries: 5}, strings.Repeat(pax('g', "comment=x"), 6)),
		headers,
		zeros,
	}
}

// squeezed compresses s.
func squeezed(s string) []byte {
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	gz.Write([]byte(s)) // a bytes.Buffer does not fail
	gz.Close()
	return buf.Bytes()
}

// streamAttacks are around the archive rather than in it.
func streamAttacks() []attack {
	good := tarball(aFile("a", "x"))
	gz := squeezed(good)
	header := func(flags byte, extra string) []byte {
		return append(append(bytes.Clone(gz[:3]), flags, 0, 0, 0, 0, 0, 255), extra...)
	}
	around := func(name, says string, raw []byte, is error) attack {
		return attack{name: name, gz: raw, is: is, says: says, stream: true}
	}
	flipped := bytes.Clone(gz)
	flipped[len(flipped)-6] ^= 1
	return []attack{
		taken("empty archive", ""),
		taken("archive of its root alone", "", aDir("./")),
		around("no archive", "no end-of-archive", squeezed(""), ErrTruncated),
		around("empty stream", "it is empty", []byte{}, ErrTruncated),
		around("gzip header with a name of 2 MiB", "gzip", header(0x08, strings.Repeat("n", 2<<20)), errOther),
		{name: "gzip header with an extra field", gz: append(header(0x04, "\xff\xff"+strings.Repeat("x", 65535)), gz[10:]...), tree: "a: x"},
		{name: "gzip of many members", gz: append(bytes.Repeat(squeezed(""), 5000), gz...), tree: "a: x"},
		around("wrong gzip checksum", "checksum", flipped, errOther),
		around("bytes after the gzip stream", "bytes after the end of the gzip stream", append(bytes.Clone(gz), "more"...), ErrRefused),
		around("archive after the end", "data after the end of the archive", squeezed(good+good), ErrRefused),
		around("archive after the end, in another member", "data after the end of the archive", append(bytes.Clone(gz), gz...), ErrRefused),
	}
}
