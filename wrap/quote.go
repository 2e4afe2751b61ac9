package wrap

import "github.com/rocm-nightly/rocm-nightly/internal/environ"

// quoteSh quotes s for a POSIX shell.
func quoteSh(s string) string { return environ.QuoteSh(s) }
