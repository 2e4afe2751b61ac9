package pgunzip

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// The header of a member (RFC 1952, section 2.3).
const (
	fixedHeader = 10
	trailerSize = 8
	maxString   = 512 // of a file name or comment and its NUL, as compress/gzip has it
	maxHeader   = fixedHeader + 2 + 1<<16 + 2*maxString + 2

	flagCRC     = 1 << 1
	flagExtra   = 1 << 2
	flagName    = 1 << 3
	flagComment = 1 << 4
)

var magic = []byte{0x1f, 0x8b, 8} // ID1, ID2, and deflate as the method

// headerLen returns the length in bytes of the header that in begins with. It
// is 0 if more input is needed, and -1 if this is none.
func headerLen(in []byte) int {
	if len(in) < fixedHeader {
		if bytes.HasPrefix(magic, in[:min(len(in), len(magic))]) {
			return 0
		}
		return -1
	}
	if !bytes.HasPrefix(in, magic) {
		return -1
	}
	flags, n := in[3], fixedHeader
	if flags&flagExtra != 0 {
		if len(in) < n+2 {
			return 0
		}
		n += 2 + int(binary.LittleEndian.Uint16(in[n:]))
	}
	for _, flag := range []byte{flagName, flagComment} {
		if flags&flag == 0 {
			continue
		}
		if len(in) < n {
			return 0
		}
		end := bytes.IndexByte(in[n:min(len(in), n+maxString)], 0)
		if end < 0 && len(in) < n+maxString {
			return 0
		}
		if end < 0 {
			return -1
		}
		n += end + 1
	}
	if flags&flagCRC != 0 {
		if len(in) < n+2 {
			return 0
		}
		if uint16(crc32.ChecksumIEEE(in[:n])) != binary.LittleEndian.Uint16(in[n:]) {
			return -1
		}
		n += 2
	}
	if len(in) < n {
		return 0
	}
	return n
}
