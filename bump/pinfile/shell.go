package pinfile

// parseShell reads a script: NAME=value at any level, with export, readonly or
// declare, lists and their items. A function's name is a component of the
// path of what it assigns.
func parseShell(src []byte, _ Options) (document, error) {
	r, err := readShell(src, false)
	if err != nil {
		return nil, err
	}
	return r.codeTree, nil
}
