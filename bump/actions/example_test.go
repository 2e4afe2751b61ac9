package actions_test

import (
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/bump/actions"
)

func ExampleWrite() {
	// In a runner, os.Getenv says where the outputs go. Here they go nowhere.
	env := func(name string) string { return "" }
	err := actions.Write(actions.FromEnv(env), []actions.Outcome{{
		Repo: "my-flake", Operation: actions.Operation("opened"), Number: 12, URL: "https://github.com/me/my-flake/pull/12",
		Version: "10.2.0a20260930", Changed: true, Verified: true, Message: "opened #12",
	}}, nil)
	fmt.Println(err)
	// Output: <nil>
}
