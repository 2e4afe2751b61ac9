// Package e2e holds no code: its tests run the binary, as a user does, against
// a real web server and the real corpus of AMD's and LLVM's programs.
//
// They need nginx, tar and the corpus, which `make test` provides; without
// them they are skipped and say what is missing.
package e2e
