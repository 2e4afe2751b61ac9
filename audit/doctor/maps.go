package doctor

import "strings"

// mapped is a file that a process maps.
type mapped struct {
	path    string
	deleted bool
}

// parseMaps lists the files of /proc/PID/maps (proc_pid_maps(5)), each once, in
// order of their addresses. Anonymous memory and devices are none.
func parseMaps(text string) []mapped {
	var all []mapped
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		// address perms offset dev inode path, the last of which may hold blanks.
		rest := strings.TrimSuffix(line, "\n")
		for range 5 {
			_, after, ok := strings.Cut(strings.TrimLeft(rest, " "), " ")
			if !ok {
				after = ""
			}
			rest = after
		}
		p := strings.TrimLeft(rest, " ")
		if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "/dev/") || seen[p] {
			continue
		}
		seen[p] = true
		// The kernel escapes the end of a line, and nothing else.
		name, deleted := strings.CutSuffix(strings.ReplaceAll(p, `\012`, "\n"), " (deleted)")
		all = append(all, mapped{name, deleted})
	}
	return all
}
