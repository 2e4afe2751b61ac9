package gfx

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A productIndex finds the target of a product by what people write for it.
// Two tables hold folded names: exact as the data has them but for fillers, and loose with
// the words left out that people leave out. What would mean two targets when
// loose is not in that one.
type productIndex struct {
	exact, loose map[string]string
	ryzens       map[string]bool // the loose names that are a processor's
}

func newProductIndex(products map[string]string) productIndex {
	ix := productIndex{map[string]string{}, map[string]string{}, map[string]bool{}}
	ambiguous := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(products)) {
		target := products[name]
		spellings := foldings(name)
		if len(spellings) == 0 {
			continue
		}
		ix.exact[spellings[0]] = target
		for _, s := range spellings {
			if other, there := ix.loose[s]; there && other != target {
				ambiguous[s] = true
			}
			ix.loose[s] = target
			ix.ryzens[s] = ix.ryzens[s] || ryzen(spellings[0])
		}
	}
	maps.DeleteFunc(ix.loose, func(s, _ string) bool { return ambiguous[s] })
	return ix
}

// find returns the target of what was asked for: as a whole, or by the parts
// of what a tool printed, such as "AMD Ryzen 7 7840U w/ Radeon 780M Graphics"
// or "Navi 31 [Radeon RX 7900 XT/7900 XTX]", where they agree.
func (ix productIndex) find(asked string) (target string, ok bool) {
	if target, ok := ix.whole(asked); ok {
		return target, true
	}
	found := map[string]bool{}
	for _, part := range partRE.Split(noMarks(asked), -1) {
		if t, ok := ix.part(part); ok {
			target = t
			found[t] = true
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return target, true
}

// part returns the target of one part: as a whole, as a list, or without what
// a vendor of cards puts in front of the name.
func (ix productIndex) part(asked string) (target string, ok bool) {
	if target, ok := ix.whole(asked); ok {
		return target, true
	}
	if target, ok := ix.list(asked); ok {
		return target, true
	}
	at := brandRE.FindStringIndex(asked)
	if at == nil || at[0] == 0 {
		return "", false
	}
	target, ok = ix.whole(asked[at[0]:])
	if before, known := ix.whole(asked[:at[0]]); known && before != target {
		return "", false // two products
	}
	return target, ok
}

// list returns the target of names with slashes between them, of which every
// one must be known, and for the same: "Radeon RX 6800/6800 XT / 6900 XT". One
// that begins with a digit has the words of the one before it in front.
func (ix productIndex) list(asked string) (target string, ok bool) {
	names := strings.Split(asked, "/")
	if len(names) < 2 {
		return "", false
	}
	front := ""
	for i, name := range names {
		name = strings.TrimSpace(name)
		if name != "" && name[0] >= '0' && name[0] <= '9' {
			name = front + name
		}
		t, known := ix.whole(name)
		if !known || i > 0 && t != target {
			return "", false
		}
		target, front = t, frontRE.FindString(name)
	}
	return target, true
}

func (ix productIndex) whole(asked string) (target string, ok bool) {
	spellings := foldings(asked)
	if len(spellings) == 0 {
		return "", false
	}
	if target, ok := ix.exact[spellings[0]]; ok {
		return target, true
	}
	for _, s := range spellings {
		if target, ok := ix.loose[s]; ok && (ix.ryzens[s] || !ryzen(spellings[0])) {
			return target, true
		}
	}
	return "", false
}

// ryzen tells a processor by its strictest spelling: a Ryzen 7600 is no RX 7600.
func ryzen(spelling string) bool { return strings.Contains(spelling, "ryzen") }

var (
	partRE   = regexp.MustCompile(`[\[\]()]|(?i: w/ | with )`)
	memoryRE = regexp.MustCompile(`\b([0-9]+ ?(gb|gib|tb)|[0-9]{1,3} ?g)\b`) // of a card, or of a whole machine
	brandRE  = regexp.MustCompile(`(?i)\b(radeon|instinct|ryzen|rx)\b`)
	frontRE  = regexp.MustCompile(`^([^0-9 ]+ +)*`)
	mobileRE = regexp.MustCompile(`^[3579](pro)?([0-9]{4}(u|h|hs|hx|g|ge|gt)|hx[0-9]{3})$`)
	marksRE  = regexp.MustCompile(`(?i)\((?:tm|r|c)\)|[™®]`)
	coresRE  = regexp.MustCompile(`^[0-9]+-cores?$`)
)

// fillers are words that say nothing about which GPU it is, wherever they
// stand; makes are words that say so little that people leave them out.
var (
	fillers = []string{"amd", "ati", "graphics", "gpu", "igpu", "dgpu", "apu", "accelerator", "processor", "series", "card", "with",
		"reference", "edition", "oem", "oc", "oam", "pcie", "vf", "gddr6", "hbm3", "hbm3e"}
	makes = []string{"radeon", "instinct", "pro"}
)

// brands are what a name may begin with, also without a space after it.
var brands = []string{"amd", "radeon", "instinct", "pro", "rx", "ryzen", "ai"}

// foldings returns the spellings of a name in lower case letters and digits,
// from the strictest to the one that leaves out most: without fillers, then
// without makes, then without each brand that it begins with. What is too
// short to be a name, or has no digit once brands are gone, is no spelling.
func foldings(name string) []string {
	words := strings.Fields(memoryRE.ReplaceAllString(strings.ToLower(noMarks(name)), " "))
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains(fillers, letters(w)) || coresRE.MatchString(w)
	})
	all := []string{letters(strings.Join(words, ""))}
	words = slices.DeleteFunc(words, func(w string) bool { return slices.Contains(makes, letters(w)) })
	s := letters(strings.Join(words, ""))
	all = append(all, s)
	for again := true; again; {
		again = false
		for _, b := range brands {
			if rest, cut := strings.CutPrefix(s, b); cut {
				s, again = rest, true
				if strings.ContainsAny(s, "0123456789") {
					all = append(all, s)
				}
			}
		}
	}
	// The digit of Ryzen 7 goes where what is behind it can be nothing else.
	if mobileRE.MatchString(s) {
		all = append(all, strings.TrimPrefix(s[1:], "pro"))
	}
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return len(s) < 3 })
}

// noMarks drops the marks of a trade.
func noMarks(s string) string {
	return marksRE.ReplaceAllString(s, " ")
}

// letters keeps letters and digits of lower case ASCII.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}
