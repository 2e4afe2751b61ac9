package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// destination is where a fetched tarball goes.
type destination struct {
	path   string // absolute; "-" for standard output
	stream bool   // written to as the bytes come: standard output, a pipe, a device
}

// destination reads -o. What is a file, or a link to one, is replaced; a pipe
// or a device is written to and stays what it is.
func (j *fetchJob) destination(output string) (destination, error) {
	if output == "-" {
		return destination{path: "-", stream: true}, nil
	}
	name := j.found.Release.Name
	if output == "" {
		output = name
	}
	fi, err := os.Stat(output)
	if err == nil && fi.IsDir() {
		output = filepath.Join(output, name)
		fi, err = os.Stat(output)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(output, "/"):
		return destination{}, fmt.Errorf("fetch to %s: %w", output, fs.ErrNotExist)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return destination{}, fmt.Errorf("fetch: %w", err)
	}
	stream := false
	if err == nil && !fi.Mode().IsRegular() {
		if fi.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) == 0 {
			return destination{}, fmt.Errorf("fetch to %s: it is there, and neither a file nor a pipe", output)
		}
		stream = true
	}
	abs, err := filepath.Abs(output)
	if err != nil {
		return destination{}, fmt.Errorf("fetch: %w", err)
	}
	return destination{abs, stream}, nil
}

// toStream passes the tarball on as it is read.
func (j *fetchJob) toStream(ctx context.Context, r io.Reader, path string) (err error) {
	if path == "-" {
		return j.check(ctx, io.TeeReader(r, outputWriter{j.a.stdout}))
	}
	// A pipe that nobody reads from must not be waited for.
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENXIO) {
		err = fmt.Errorf("nobody reads from it: %w", err)
	}
	if err != nil {
		return &outputError{err}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return j.check(ctx, io.TeeReader(r, outputWriter{f}))
}

// toFile writes the tarball beside path, and renames it when it is whole. Its
// name until then is always the same, so that a run that was killed leaves
// nothing that the next one does not take away; the lock of the spool keeps
// others from writing it.
func (j *fetchJob) toFile(ctx context.Context, r io.Reader, path, temp string) (err error) {
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &outputError{err}
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &outputError{err}
	}
	defer func() {
		if err != nil {
			f.Close() // the first error counts
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	if err := j.check(ctx, io.TeeReader(r, outputWriter{f})); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return &outputError{err}
	}
	if err := os.Rename(temp, path); err != nil {
		return &outputError{err}
	}
	return nil
}

// outputError is an error about where the tarball is written to: what was
// downloaded is right, and stays for the next run.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write the tarball: " + e.err.Error() }

func (e *outputError) Unwrap() error { return e.err }

func isOutput(err error) bool { return isA[*outputError](err) }

// outputWriter marks the errors of writing.
type outputWriter struct{ w io.Writer }

func (o outputWriter) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}
