//go:build !amd64

package cage

import (
	"errors"

	"golang.org/x/sys/unix"
)

// filter: ROCm is for x86-64, and so is the list of its system calls.
func (s *spec) filter() ([]unix.SockFilter, error) {
	return nil, errors.New("there is none for this architecture")
}
