package pinfile

// uriEnd returns where the URI at the lexer's position ends, or 0. Nix takes
// scheme:rest without quotes; the scheme begins with a letter.
func (l *lexer) uriEnd() int {
	c := l.src[l.pos]
	if !isIdentStart(c) || c == '_' {
		return 0
	}
	if l.uriRun <= l.pos {
		l.uriRun = l.span(l.pos, isSchemeByte)
	}
	if l.at(l.uriRun) != ':' || !isURIByte(l.at(l.uriRun+1)) {
		return 0
	}
	return l.span(l.uriRun+1, isURIByte)
}

// pathEnd returns where the path at the lexer's position ends, or 0, and
// whether more of it may follow: a/b, ./b, ~/b, <b/c>, or a/ before ${.
func (l *lexer) pathEnd() (end int, more bool) {
	switch c := l.src[l.pos]; {
	case c == '<':
		return l.searchPathEnd(), false
	case c == '~':
		return l.segments(l.pos + 1)
	case c == '/':
		return l.segments(l.pos)
	case !isPathByte(c):
		return 0, false
	}
	if l.pathRun <= l.pos {
		l.pathRun = l.span(l.pos, isPathByte)
	}
	return l.segments(l.pathRun)
}

// segments reads (/name)+ with an optional last slash, or one slash before
// ${; 0 when there is none.
func (l *lexer) segments(i int) (end int, more bool) {
	start := i
	for l.at(i) == '/' && isPathByte(l.at(i+1)) {
		i = l.span(i+1, isPathByte)
	}
	slash := l.at(i) == '/'
	interp := slash && l.at(i+1) == '$' && l.at(i+2) == '{'
	switch {
	case i == start && !interp:
		return 0, false
	case slash && (interp || l.at(i+1) != '/'):
		i++
	}
	return i, true
}

// searchPathEnd measures <name/name>.
func (l *lexer) searchPathEnd() int {
	i := l.pos + 1
	for {
		j := l.span(i, isPathByte)
		if j == i {
			return 0
		}
		switch l.at(j) {
		case '>':
			return j + 1
		case '/':
			i = j + 1
		default:
			return 0
		}
	}
}

// inPath emits a path and, where ${ follows at once, the interpolation.
func (l *lexer) inPath(end int, more bool) error {
	l.emit(tokPath, end)
	if !more {
		return nil
	}
	return l.interpolated()
}

func (l *lexer) interpolated() error {
	if !l.has("${") {
		return nil
	}
	if err := l.push('$', true); err != nil {
		return err
	}
	l.emit(tokInterpOpen, l.pos+2)
	return nil
}

// morePath continues a path after the } of an interpolation in it.
func (l *lexer) morePath() error {
	i := l.span(l.pos, isPathByte)
	if end, _ := l.segments(i); end > 0 {
		i = end
	}
	if i > l.pos {
		l.emit(tokPath, i)
	}
	return l.interpolated()
}
