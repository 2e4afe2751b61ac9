package release

import (
	"encoding/binary"
	"strings"
)

// maxVersionLen bounds what ParseVersion reads; AMD's longest (a dev version
// with a full commit) has 52 bytes.
const maxVersionLen = 128

// maxDigits is how long a number of a version may be, so that none overflows.
const maxDigits = 18

// parts is a version taken to pieces.
type parts struct {
	base    string // release numbers
	letter  string // a, b or rc; "" if it is no pre-release
	preText string // the number behind the letter
	pre     uint64
	hasPost bool
	post    uint64
	hasDev  bool
	dev     uint64
	local   string // behind the plus sign; "" if there is none
}

// scanVersion reads the normalised spelling of PEP 440, restricted to what
// can be in a file name: N(.N)+[{a|b|rc}N][.postN][.devN][+local], lower
// case, at least two release numbers and no epoch.
func scanVersion(s string) (p parts, ok bool) {
	if len(s) > maxVersionLen {
		return parts{}, false
	}
	rest, ok := s, true
	if rest, ok = scanBase(s); !ok {
		return parts{}, false
	}
	p.base = s[:len(s)-len(rest)]
	for _, letter := range [...]string{"a", "b", "rc"} {
		if after, found := strings.CutPrefix(rest, letter); found {
			p.letter = letter
			p.preText, p.pre, rest, ok = scanNumber(after)
			break
		}
	}
	if after, found := strings.CutPrefix(rest, ".post"); ok && found {
		p.hasPost = true
		_, p.post, rest, ok = scanNumber(after)
	}
	if after, found := strings.CutPrefix(rest, ".dev"); ok && found {
		p.hasDev = true
		_, p.dev, rest, ok = scanNumber(after)
	}
	if !ok || rest == "" {
		return p, ok
	}
	p.local, ok = strings.CutPrefix(rest, "+")
	return p, ok && isLocal(p.local)
}

// scanBase reads two or more numbers between dots, and returns what follows.
func scanBase(s string) (rest string, ok bool) {
	_, _, rest, ok = scanNumber(s)
	for n := 1; ok; n++ {
		after, dot := strings.CutPrefix(rest, ".")
		if !dot || after == "" || after[0] < '0' || after[0] > '9' {
			return rest, n >= 2
		}
		_, _, rest, ok = scanNumber(after)
	}
	return "", false
}

func scanNumber(s string) (text string, n uint64, rest string, ok bool) {
	i := 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		n = n*10 + uint64(s[i]-'0') // wraps only beyond maxDigits
	}
	return s[:i], n, s[i:], i > 0 && i <= maxDigits
}

func isLocal(s string) bool {
	for segment := range strings.SplitSeq(s, ".") {
		if segment == "" {
			return false
		}
		for i := range len(segment) {
			if c := segment[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

// Phases of one base, in their order. PEP 440 puts a development build of
// nothing but the base below its first alpha.
const (
	phaseDev byte = iota + 1
	phaseA
	phaseB
	phaseRC
	phaseFinal
)

// sortKey returns a string that orders, byte by byte, as versions do (PEP
// 440, "Summary of permitted suffixes and relative ordering"), but for what
// Version.Compare says of nights and development builds. Each piece is coded
// so that none is the beginning of another, and what is absent has its place:
//
//	release numbers  01 and eight bytes each, no trailing zeros, then 00
//	pre-release      the phase, eight bytes, then 00 for a night spelled as rc, or 01
//	post             00, or 01 and eight bytes
//	dev              00 and eight bytes, or 01
//	local            00, or 01 and its segments (see appendLocal)
func (p *parts) sortKey(kind Kind, night bool) string {
	key := make([]byte, 0, 96)
	key = appendBase(key, p.base)
	phase, spelling := p.phase(), byte(1)
	if phase == phaseRC && night {
		phase, spelling = phaseA, 0
	}
	key = append(key, phase)
	key = binary.BigEndian.AppendUint64(key, p.pre)
	key = append(key, spelling)
	if p.hasPost {
		key = binary.BigEndian.AppendUint64(append(key, 1), p.post)
	} else {
		key = append(key, 0)
	}
	if p.hasDev {
		key = binary.BigEndian.AppendUint64(append(key, 0), p.dev)
	} else {
		key = append(key, 1)
	}
	if kind != Dev {
		key = appendLocal(key, p.local)
	}
	return string(key)
}

func (p *parts) phase() byte {
	switch {
	case p.letter == "a":
		return phaseA
	case p.letter == "b":
		return phaseB
	case p.letter == "rc":
		return phaseRC
	case p.hasDev && !p.hasPost:
		return phaseDev
	}
	return phaseFinal
}

func appendBase(key []byte, base string) []byte {
	end := len(key)
	for rest := base; rest != ""; {
		var n uint64
		_, n, rest, _ = scanNumber(strings.TrimPrefix(rest, "."))
		key = binary.BigEndian.AppendUint64(append(key, 1), n)
		if n != 0 {
			end = len(key)
		}
	}
	return append(key[:end], 0)
}

// appendLocal codes a local part: a segment of letters is below one of
// digits, digits are compared as numbers, and more segments are above fewer.
// A number may be as long as a version, so it is led by its length.
func appendLocal(key []byte, local string) []byte {
	if local == "" {
		return append(key, 0)
	}
	key = append(key, 1)
	for segment := range strings.SplitSeq(local, ".") {
		if strings.Trim(segment, "0123456789") != "" {
			key = append(append(append(key, 1), segment...), 0)
			continue
		}
		digits := strings.TrimLeft(segment, "0")
		key = append(append(key, 2, byte(len(digits))), digits...)
	}
	return append(key, 0)
}
