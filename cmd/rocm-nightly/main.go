package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

func main() {
	if code, inside := cage.Main(); inside {
		os.Exit(code)
	}
	var ignored []os.Signal
	if signal.Ignored(os.Interrupt) { // as of a job in the background of a script
		ignored = append(ignored, os.Interrupt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	// net/http has things to say about hostile servers, in their words.
	log.SetOutput(io.Discard)
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, environ: os.Environ, ignored: ignored, uid: os.Getuid()}
	os.Exit(a.run(ctx, os.Args[1:]))
}
