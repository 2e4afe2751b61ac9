package pinfile

import "slices"

// frame is a part of a file of Nix in which names are bound: a let with its
// body, a rec set, or the body of a function.
type frame struct {
	start, end int      // in code, end not included
	opener     int32    // of let and rec: as in binding.scope
	args       []string // of a function, whose values are not known
}

// maxSteps bounds the work on names of one file. A file that needs more has its
// names unknown.
const maxSteps = 5_000_000

// frames finds all frames, by their start.
func (e *nixEval) findFrames() {
	s := e.scan
	for i := range s.code {
		switch word := s.wordAt(i); {
		case word == "let":
			e.frames = append(e.frames, frame{start: i, end: e.exprEnd(e.letBody(i)), opener: int32(i)})
		case s.code[i].kind == tokOpen && s.src[s.code[i].off] == '{':
			end := int(s.mate[i])
			if prev := s.wordAt(i - 1); prev == "rec" || prev == "let" {
				e.frames = append(e.frames, frame{start: i, end: end, opener: int32(i)})
			}
			if e.isArgs(i) {
				e.function(end+1, e.argNames(i))
			}
		case word != "" && e.is(i+1, ':'):
			e.function(i+1, []string{word})
		}
	}
	slices.SortStableFunc(e.frames, func(a, b frame) int { return a.start - b.start })
}

// function adds the body of one, whose arguments end before i: a colon, or @
// and a name first.
func (e *nixEval) function(i int, args []string) {
	if e.is(i, '@') {
		args = append(args, e.scan.wordAt(i+1))
		i += 2
	}
	e.frames = append(e.frames, frame{start: i, end: e.exprEnd(i + 1), opener: -2, args: args})
}

// is reports whether the token at i is that one byte.
func (e *nixEval) is(i int, c byte) bool {
	if i < 0 || i >= len(e.scan.code) {
		return false
	}
	t := e.scan.code[i]
	return t.end-t.off == 1 && e.scan.src[t.off] == c
}

// isArgs reports whether the brace at i opens the arguments of a function.
func (e *nixEval) isArgs(i int) bool {
	m := int(e.scan.mate[i])
	return e.is(m+1, ':') || e.is(m+1, '@')
}

// argNames reads { a, b ? c, ... }, and the name before it in a@{ … }.
func (e *nixEval) argNames(i int) []string {
	var names []string
	if e.is(i-1, '@') {
		names = append(names, e.scan.wordAt(i-2))
	}
	first := true
	for j := i + 1; j < int(e.scan.mate[i]); j++ {
		e.steps++
		if word := e.scan.wordAt(j); word != "" && first {
			names = append(names, word)
		}
		first = e.is(j, ',')
		if m := int(e.scan.mate[j]); m > j {
			j = m
		}
	}
	return names
}

// letBody returns where the body of the let at i begins.
func (e *nixEval) letBody(i int) int {
	depth := 0
	for ; i < len(e.scan.code) && e.steps < maxSteps; i++ {
		e.steps++
		switch e.scan.wordAt(i) {
		case "let":
			if !e.is(i+1, '{') {
				depth++
			} else if depth == 0 {
				return i + 1
			}
		case "in":
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if m := int(e.scan.mate[i]); m > i {
			i = m
		}
	}
	return i
}

// exprEnd returns where the expression that begins at i ends: at the bracket
// around it, or at the semicolon or comma behind it.
func (e *nixEval) exprEnd(i int) int {
	lets, pending := 0, 0
	for ; i < len(e.scan.code) && e.steps < maxSteps; i++ {
		e.steps++
		switch t := e.scan.code[i]; {
		case t.kind == tokClose || t.kind == tokStrClose || t.kind == tokIndClose:
			return i
		case t.kind == tokSemicolon && pending > 0:
			pending--
		case (t.kind == tokSemicolon || e.is(i, ',')) && lets <= 0:
			return i
		case t.kind == tokIdent:
			switch e.scan.wordAt(i) {
			case "let":
				if !e.is(i+1, '{') {
					lets++
				}
			case "in":
				lets--
			case "with", "assert":
				pending++
			}
		}
		if m := int(e.scan.mate[i]); m > i {
			i = m
		}
	}
	return i
}
