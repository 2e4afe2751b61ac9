package pinfile

// parseStarlark reads a file of Bazel, or another of Starlark. A path is made
// of the names that values are assigned to, keyword arguments, keys of
// dictionaries and the functions (def) around them; a call that is assigned to
// nothing goes by the name of its function.
func parseStarlark(src []byte, _ Options) (document, error) {
	r, err := readPython(src, nil)
	if err != nil {
		return nil, err
	}
	r.linkAll()
	return r.codeTree, nil
}
