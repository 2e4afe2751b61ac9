package audit

import "github.com/rocm-nightly/rocm-nightly/internal/plain"

// printable is f with nothing in it that a terminal obeys or a log takes for a
// new line. Two names that differ stay different in Path and Subject, by which a
// finding is known again.
func (f Finding) printable() Finding {
	f.Path, f.Subject = plain.Name(f.Path), plain.Name(f.Subject)
	f.Detail, f.Hint = plain.Text(f.Detail), plain.Text(f.Hint)
	return f
}
