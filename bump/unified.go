package bump

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	diffContext = 3       // lines around a change
	maxScript   = 2000    // changed lines that are told apart; more are one change
	maxDiff     = 4 << 20 // bytes of a unified diff
)

// unified returns the unified diff from a to b, files at path; "" if they are
// the same. A nil a is a file that is not there yet.
func unified(path string, a, b []byte) string {
	if bytes.Equal(a, b) && a != nil {
		return ""
	}
	var out strings.Builder
	from := "a/" + path
	if a == nil {
		from = "/dev/null"
	}
	fmt.Fprintf(&out, "diff --git a/%s b/%s\n--- %s\n+++ b/%s\n", path, path, from, path)
	la, lb := lines(a), lines(b)
	for _, h := range hunks(script(la, lb)) {
		writeHunk(&out, h, la, lb)
		if out.Len() > maxDiff {
			out.WriteString("… (the rest of the diff is left out)\n")
			break
		}
	}
	return out.String()
}

func lines(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		out = append(out, line)
	}
	return out
}

// span is a change: lines a0..a1 of the old text become b0..b1 of the new one.
type span struct{ a0, a1, b0, b1 int }

// script returns the changes from a to b, in order, by Myers' greedy
// algorithm (An O(ND) Difference Algorithm and Its Variations, 1986).
func script(a, b []string) []span {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	spans, ok := myers(a[head:len(a)-tail], b[head:len(b)-tail])
	if !ok {
		return []span{{head, len(a) - tail, head, len(b) - tail}}
	}
	for i := range spans {
		s := &spans[i]
		s.a0, s.a1, s.b0, s.b1 = s.a0+head, s.a1+head, s.b0+head, s.b1+head
	}
	return spans
}

// myers is false when more than maxScript lines differ.
func myers(a, b []string) ([]span, bool) {
	limit := min(len(a)+len(b), maxScript)
	v := make([]int, 2*limit+2)
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), v[limit-d:limit+d+1]...))
		for k := -d; k <= d; k += 2 {
			x := 0
			if k == -d || k != d && v[limit+k-1] < v[limit+k+1] {
				x = v[limit+k+1]
			} else {
				x = v[limit+k-1] + 1
			}
			for x < len(a) && x-k < len(b) && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			v[limit+k] = x
			if x >= len(a) && x-k >= len(b) {
				return backtrack(trace, len(a), len(b)), true
			}
		}
	}
	return nil, false
}

// backtrack walks the trace from the end and joins neighbouring changes.
func backtrack(trace [][]int, x, y int) []span {
	var rev []span
	for d := len(trace) - 1; d > 0; d-- {
		at := func(k int) int { return trace[d][k+d] }
		k := x - y
		prev := k - 1
		if k == -d || k != d && at(k-1) < at(k+1) {
			prev = k + 1
		}
		px := at(prev)
		py := px - prev
		s := span{px, px + 1, py, py}
		if prev > k {
			s = span{px, px, py, py + 1}
		}
		if n := len(rev); n > 0 && rev[n-1].a0 == s.a1 && rev[n-1].b0 == s.b1 {
			rev[n-1].a0, rev[n-1].b0 = s.a0, s.b0
		} else {
			rev = append(rev, s)
		}
		x, y = px, py
	}
	out := make([]span, 0, len(rev))
	for i := len(rev) - 1; i >= 0; i-- {
		out = append(out, rev[i])
	}
	return out
}

// hunks groups changes that are closer than two contexts.
func hunks(spans []span) [][]span {
	var out [][]span
	for _, s := range spans {
		if n := len(out); n > 0 && s.a0-out[n-1][len(out[n-1])-1].a1 <= 2*diffContext {
			out[n-1] = append(out[n-1], s)
			continue
		}
		out = append(out, []span{s})
	}
	return out
}

func writeHunk(out *strings.Builder, h []span, a, b []string) {
	first, last := h[0], h[len(h)-1]
	a0, a1 := max(first.a0-diffContext, 0), min(last.a1+diffContext, len(a))
	b0, b1 := first.b0-(first.a0-a0), last.b1+(a1-last.a1)
	fmt.Fprintf(out, "@@ -%s +%s @@\n", lineRange(a0, a1), lineRange(b0, b1))
	at := a0
	for _, s := range h {
		writeLines(out, ' ', a[at:s.a0])
		writeLines(out, '-', a[s.a0:s.a1])
		writeLines(out, '+', b[s.b0:s.b1])
		at = s.a1
	}
	writeLines(out, ' ', a[at:a1])
}

func lineRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *strings.Builder, mark byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
