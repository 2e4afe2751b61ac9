package diff

import (
	"fmt"
	"slices"
)

// Limits of the difference of two texts.
const (
	maxLines     = 2000 // of each text: the table has the product of both
	maxDiffLines = 200  // shown
	aroundLines  = 3    // equal lines shown around a change
)

// unified is the difference of two texts in the form of diff -u, without the
// names of the files, and how many lines were left out.
func unified(a, b []string) (lines []string, left int) {
	if len(a) > maxLines || len(b) > maxLines {
		return []string{fmt.Sprintf("@@ %d lines, now %d: too many to compare @@", len(a), len(b))}, 0
	}
	all := hunks(script(a, b))
	return cut(all, maxDiffLines), max(0, len(all)-maxDiffLines)
}

// line is one of an edit script: ' ', '-' or '+' and the text.
type line struct {
	op   byte
	text string
}

// script turns a into b by the longest common subsequence.
func script(a, b []string) []line {
	pre := 0
	for pre < min(len(a), len(b)) && a[pre] == b[pre] {
		pre++
	}
	post := 0
	for post < min(len(a), len(b))-pre && a[len(a)-1-post] == b[len(b)-1-post] {
		post++
	}
	var out []line
	for _, s := range a[:pre] {
		out = append(out, line{' ', s})
	}
	out = append(out, middle(a[pre:len(a)-post], b[pre:len(b)-post])...)
	for _, s := range a[len(a)-post:] {
		out = append(out, line{' ', s})
	}
	return out
}

func middle(a, b []string) []line {
	// common[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
	common := make([][]int16, len(a)+1)
	for i := range common {
		common[i] = make([]int16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []line
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, line{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			out = append(out, line{'-', a[i]})
			i++
		default:
			out = append(out, line{'+', b[j]})
			j++
		}
	}
	return out
}

// hunks writes a script with the equal lines around its changes.
func hunks(all []line) []string {
	keep := make([]bool, len(all))
	for i, l := range all {
		if l.op != ' ' {
			for k := max(0, i-aroundLines); k <= min(len(all)-1, i+aroundLines); k++ {
				keep[k] = true
			}
		}
	}
	var out []string
	a, b := 1, 1
	for i := 0; i < len(all); {
		if !keep[i] {
			a, b, i = a+1, b+1, i+1
			continue
		}
		n := slices.Index(keep[i:], false)
		if n < 0 {
			n = len(all) - i
		}
		na, nb := 0, 0
		for _, l := range all[i : i+n] {
			if l.op != '+' {
				na++
			}
			if l.op != '-' {
				nb++
			}
		}
		out = append(out, fmt.Sprintf("@@ -%s +%s @@", span(a, na), span(b, nb)))
		for _, l := range all[i : i+n] {
			out = append(out, string(l.op)+l.text)
		}
		a, b, i = a+na, b+nb, i+n
	}
	return out
}

// span is a range of lines as diff -u writes it.
func span(from, n int) string {
	if n == 0 {
		from--
	}
	if n == 1 {
		return fmt.Sprint(from)
	}
	return fmt.Sprintf("%d,%d", from, n)
}
