package diskspace

import "strings"

// What AMD's tarballs become, where nothing better is known. Of gfx1151, one of
// 1.79 GB is 8.4 GB unpacked (10.0.0), in about 29,500 files (10.2.0a20260916):
// five-fold, a little less or more from night to night.
const (
	guessRatio  = 5
	guessInodes = 30_000
)

// Guess is the need of a tarball's content, of which only the size is known,
// in bytes. In no case is it less than the tarball itself.
func Guess(name string, size int64) Need {
	if strings.HasSuffix(name, ".tar") { // which is not compressed
		return Estimated(size, 0, Least{Bytes: size / 2, Compressed: size / 20})
	}
	return Estimated(times(size, guessRatio), guessInodes, Least{Bytes: size, Compressed: size})
}

// Scaled is the need of a tarball of so many bytes, when an earlier one of the
// family took used bytes and inodes and was earlier bytes itself. Where sure,
// the two are made alike, and a tenth less than that cannot do; else the
// tarball itself is the least.
func Scaled(size, used, inodes, earlier int64, sure bool) Need {
	if earlier <= 0 || size <= 0 {
		return Guess("", size)
	}
	ratio := float64(used) / float64(earlier)
	if ratio > 1000 {
		return Guess("", size)
	}
	likely := int64(ratio * float64(size))
	least := Least{Bytes: min(size, likely), Compressed: min(size, likely)}
	if sure {
		least.Bytes, least.Inodes = likely-likely/10, inodes-inodes/5
	}
	return Estimated(likely+likely/10, inodes+inodes/10, least)
}

// Reserve is what is left free beside a work of so many bytes: for records,
// and for whoever else writes there meanwhile.
func Reserve(bytes int64) int64 { return min(bytes/50+1<<20, 64<<20) }

func times(n, by int64) int64 {
	if n > (1<<63-1)/by {
		return 1<<63 - 1
	}
	return n * by
}
