package pinfile

import "slices"

// parseSpack reads a package.py of Spack. On top of what Starlark's reader
// tells, version("1.2", sha256="…") has a value of its own, its version, so
// that version[0] is that of the first call, version[0].sha256 its hash, and
// version[sha256=…] the call with that hash. In url_for_version, version is
// that of the first call, for Spack wants the newest listed first.
func parseSpack(src []byte, _ Options) (document, error) {
	var first *pyExpr
	r, err := readPython(src, func(r *pyReader, n *codeNode, e *pyExpr) {
		if e.name != "version" || e.on.kind != shapeName || len(e.args) == 0 || e.args[0].name != "" {
			return
		}
		arg := e.args[0].val
		e.args = e.args[1:]
		if arg.kind != shapeStr || len(arg.strs) != 1 {
			n.weak = true
			r.value(n, problemSite(arg.off, arg.end, string(src[arg.off:arg.end]), "the version is not one string"))
			return
		}
		r.value(n, pySite(src, arg.strs[0]))
		if first == nil {
			first = arg
		}
	})
	if err != nil {
		return nil, err
	}
	defs := map[*codeNode]bool{}
	for _, n := range r.functions {
		defs[n] = true
		key := pyConst{n, "version"}
		if first != nil && n.name == "url_for_version" && r.consts[key] == nil {
			r.consts[key] = &pyConstant{expr: first}
		}
	}
	// What a method sets as it runs is no pin.
	r.values = slices.DeleteFunc(r.values, func(n *codeNode) bool {
		for ; n != nil; n = n.parent {
			if defs[n] {
				return true
			}
		}
		return false
	})
	r.linkAll()
	return r.codeTree, nil
}
