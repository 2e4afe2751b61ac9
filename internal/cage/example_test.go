package cage_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

func ExampleRun() {
	prefix := "/opt/rocm"
	result, err := cage.Run(context.Background(), cage.Command{
		Path:     prefix + "/bin/rocminfo",
		ReadOnly: []string{prefix},
	})
	var notRun *cage.NotRunError
	switch {
	case errors.As(err, &notRun):
		fmt.Println("not run:", notRun.Reason)
	case err != nil:
		fmt.Println("failed:", err)
	case result.TimedOut || result.Signal != "":
		fmt.Println("failed: it hung or crashed")
	default:
		fmt.Printf("%d: %s\n", result.ExitCode, result.Stdout)
	}
}
