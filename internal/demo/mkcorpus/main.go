package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "mkcorpus: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("say late, kpack or night")
	}
	switch args[0] {
	case "late":
		return late(args[1:])
	case "kpack":
		return kpack(args[1:], out)
	case "night":
		return nights(args[1:], out)
	}
	return fmt.Errorf("no command %q: say late, kpack or night", args[0])
}

// nights makes tarballs of the given versions in a directory, and prints their paths.
func nights(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("say night DIR VERSION")
	}
	for _, version := range args[1:] {
		path, err := demo.Night(context.Background(), args[0], demo.NightOptions{Version: version})
		if err != nil {
			return err
		}
		fmt.Fprintln(out, path)
	}
	return nil
}

// late moves the program headers of a file to its end, in place.
func late(args []string) error {
	flags := flag.NewFlagSet("late", flag.ContinueOnError)
	ref := flags.String("ref", "", "kernel name to refer to kernels by, in a section of its own")
	pattern := flags.String("kpack", "", "path of the archives, from the file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := flags.Arg(0)
	in, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var o demo.LateOptions
	if *ref != "" {
		o.KpackRef = demo.KpackRef(*ref, *pattern)
	}
	moved, err := demo.MoveProgramHeaders(in, o)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, moved, 0o644) // keeps the mode of what is there
}

// kpack writes an archive of one code object.
func kpack(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kpack", flag.ContinueOnError)
	group := flags.String("group", "", "name of the archive's group")
	gpu := flags.String("gpu", "", "GPU that the code is for")
	kernel := flags.String("kernel", "", "library that the code belongs to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	code, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	_, err = out.Write(demo.Kpack(*group, *gpu, *kernel, code))
	return err
}
