package secret_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func ExampleSource_ReadToken() {
	env := func(string) string { return "ghp_0123456789\n" }
	token, err := secret.Source{Env: "GITHUB_TOKEN"}.ReadToken(env)
	fmt.Println(token, err)
	fmt.Println(secret.Scrub("sent ghp_0123456789", token))
	// Output:
	// [redacted] <nil>
	// sent [redacted]
}
