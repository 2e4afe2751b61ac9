package pgunzip_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

// The flags of a header (RFC 1952, section 2.3.1).
const (
	withText    = 1
	withCRC     = 2
	withExtra   = 4
	withName    = 8
	withComment = 16
)

// headerWith has what flags say. extra, name and comment are given without what
// ends them.
func headerWith(flags byte, extra, name, comment []byte) []byte {
	h := []byte{0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 2, 3}
	if flags&withExtra != 0 {
		h = binary.LittleEndian.AppendUint16(h, uint16(len(extra)))
		h = append(h, extra...)
	}
	if flags&withName != 0 {
		h = append(append(h, name...), 0)
	}
	if flags&withComment != 0 {
		h = append(append(h, comment...), 0)
	}
	if flags&withCRC != 0 {
		h = binary.LittleEndian.AppendUint16(h, uint16(crc32.ChecksumIEEE(h)))
	}
	return h
}

func fullHeader() []byte {
	return headerWith(31, []byte("RN\x04\x00abcd"), []byte("rocm.tar"), []byte("what it is"))
}

// TestHeaders decodes members with all combinations of the optional parts,
// alone and behind one another.
func TestHeaders(t *testing.T) {
	deflated, content := []byte{3, 0}, []byte(nil)
	var all []byte
	for flags := range byte(32) {
		for _, n := range []int{0, 1, 511} {
			h := headerWith(flags, bytes.Repeat([]byte{0x1f}, n*128), bytes.Repeat([]byte("n"), n), bytes.Repeat([]byte{0xe9}, n))
			file := member(h, deflated, content)
			new(oracle).compare(t, fmt.Sprintf("flags %d, %d", flags, n), file)
			all = append(all, file...)
		}
	}
	got := new(oracle).compare(t, "all", all)
	wanted(t, "all", got, result{content, clean})

	for name, tt := range map[string]struct {
		header []byte
		end    ending
	}{
		"reserved flags": {headerWith(0xe0, nil, nil, nil), clean},
		"longest extra":  {headerWith(withExtra, make([]byte, 65535), nil, nil), clean},
		"long name":      {headerWith(withName, nil, bytes.Repeat([]byte("n"), 512), nil), noHeader},
		"long comment":   {headerWith(withComment, nil, nil, bytes.Repeat([]byte("n"), 1<<20)), noHeader},
		"wrong CRC":      {append(headerWith(withCRC, nil, nil, nil)[:10], 1, 2), noHeader},
		"method 7":       {[]byte{0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0}, noHeader},
	} {
		file := member(tt.header, deflated, content)
		wanted(t, name, new(oracle).compare(t, name, file), result{content, tt.end})
		behind := slices.Concat(member(plainHeader, deflated, content), file)
		wanted(t, name, new(oracle).compare(t, name+", second", behind), result{content, tt.end})
	}
}

// TestMembers concatenates members: many, empty, tiny, and ending at each bit
// of a byte.
func TestMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	for _, many := range []int{1, 2, 3, 10, 100, 1000} {
		var file, content []byte
		for i := range many {
			part := prose(r, []int{0, 1, i % 9, 20}[i%4])
			var w bitWriter
			for range i % 8 { // empty fixed blocks of ten bits move the end
				w.fixed(false, endOp)
			}
			w.fixed(true, append(literals(string(part)), endOp)...)
			file = append(file, member([][]byte{plainHeader, fullHeader()}[i%2], w.bytes(), part)...)
			content = append(content, part...)
		}
		same(t, fmt.Sprintf("%d members", many), file, content)
	}
}

// TestLargeMembers concatenates members that are decoded in pieces, so that a
// match of one would reach into the other if the window were kept.
func TestLargeMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	var file, content []byte
	for i := range 12 {
		part := prose(r, r.IntN(200<<10))
		if i%4 == 3 {
			part = part[:min(10, len(part))]
		}
		file = append(file, zip(t, part, 1+i%9)...)
		content = append(content, part...)
	}
	same(t, "members", file, content)
}
