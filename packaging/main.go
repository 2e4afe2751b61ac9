package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

// options are those of all commands.
type options struct {
	version, arch, scripts, commit, goTool, out string
	when                                        time.Time // the time of everything
}

var errUsage = errors.New("usage: packaging packages|tarball|sbom|licenses -o OUT [flags] INPUT")

func run(args []string, epoch string, stderr io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	var o options
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.version, "version", "", "the version, as v1.2.3")
	f.StringVar(&o.arch, "arch", "amd64", "amd64 or arm64")
	f.StringVar(&o.scripts, "scripts", ".", "the directory of deb/, rpm/ and arch/")
	f.StringVar(&o.commit, "commit", "", "of the sources")
	f.StringVar(&o.goTool, "go", "go", "the go command")
	f.StringVar(&o.out, "o", "", "what to write")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.NArg() != 1 || o.out == "" {
		return errUsage
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
	}
	o.when = time.Unix(seconds, 0).UTC()
	switch input := f.Arg(0); args[0] {
	case "packages":
		return packages(input, o)
	case "tarball":
		return tarball(input, o)
	case "sbom":
		return sbom(input, o)
	case "licenses":
		return licenses(input, o)
	}
	return errUsage
}
