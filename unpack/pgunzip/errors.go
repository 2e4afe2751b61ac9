package pgunzip

import (
	"errors"
	"fmt"
)

// ErrHeader is matched by the error about input that does not begin like a
// gzip member.
var ErrHeader = errors.New("not a gzip header")

// ErrTrailing is matched by the error about bytes, other than NULs, that follow
// the last member and do not begin another.
var ErrTrailing = errors.New("bytes after the end of the gzip stream")

// ErrChecksum is matched by the error about a member whose content has another
// CRC-32 or length than the member says.
var ErrChecksum = errors.New("wrong gzip checksum")

// CorruptError is about data that no compressor writes.
type CorruptError struct {
	Offset int64 // of the input, in bytes: near there the decompressor gave up
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt gzip data near byte %d of the input", e.Offset)
}
