package forge_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func ExampleOpen() {
	f, err := forge.Open(context.Background(), forge.Config{
		Kind: forge.GitHub, Web: "https://github.com", Owner: "me", Name: "flake",
		Auth: forge.Auth{Token: secret.New("github_pat_0123456789")},
	})
	_, trees := f.(forge.Trees)
	fmt.Println(err, trees)

	_, err = forge.Open(context.Background(), forge.Config{Kind: "cvs"})
	fmt.Println(errors.Is(err, forge.ErrUnsupported))
	// Output:
	// <nil> true
	// true
}
