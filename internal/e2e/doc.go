// Package e2e holds no code: its tests run the binary, as a user does, against
// a real web server and the real corpus of AMD's and LLVM's programs.
//
// They need nginx, tar and the corpus, which `make test` provides; without
// them they are skipped and say what is missing. Others have an axe: they kill the
// program, take the power of its disk away and fill it, with small nights of
// internal/demo (docs/durability.md).
package e2e
