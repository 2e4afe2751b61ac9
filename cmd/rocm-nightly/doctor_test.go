package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
	"github.com/rocm-nightly/rocm-nightly/audit/doctor/recorded"
)

// doctorOn is the program on a recorded machine, which its first argument names:
// one of $MACHINES.
func doctorOn() {
	archive, err := txtar.ParseFile(filepath.Join(os.Getenv("MACHINES"), os.Args[1]+".txtar"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	s, m, err := recorded.Load(archive, os.Getenv("TOPOLOGIES"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, uid: m.UID, rootFlag: m.Root,
		machine: func() *doctor.System { return s }}
	args := os.Args[2:]
	if m.Root != "" {
		args = append(args, "--root", m.Root)
	}
	os.Exit(a.run(context.Background(), args))
}
