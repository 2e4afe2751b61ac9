package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func Example_packageVersions() {
	for _, v := range []string{"v1.2.3", "v1.3.0-rc.1", "v0.0.0-20260930063000-c0ffee000000+dirty"} {
		fmt.Println(packageVersions(v))
	}
	// Output:
	// {1.2.3 1.2.3 1.2.3} <nil>
	// {1.3.0~rc.1 1.3.0~rc.1 1.3.0rc.1} <nil>
	// {0.0.0~20260930063000.c0ffee000000+dirty 0.0.0~20260930063000.c0ffee000000+dirty 0.0.0pre20260930063000.c0ffee000000+dirty} <nil>
}

func TestVersionsThatAreNone(t *testing.T) {
	for _, v := range []string{"", "dev", "v1", "v1.2", "1.2.3.4", "v1.2.3-", "v1.2.3-a b", "v1.2.3\n", "v1.2.3-$(x)"} {
		if got, err := packageVersions(v); err == nil {
			t.Errorf("%q is %v", v, got)
		}
	}
}

// Whatever is built between two releases is newer than the one and older than the
// other, for each of the package managers.
func TestVersionsSortAsTheyWereMade(t *testing.T) {
	inOrder := []string{
		"v0.0.0-20260930063000-c0ffee000000", "v0.0.0-20261001063000-00c0ffee0000", "v0.1.0-alpha.1", "v0.1.0-rc.1", "v0.1.0-rc.2",
		"v0.1.0", "v0.1.1-0.20261101063000-c0ffee000000", "v0.1.1", "v0.2.0", "v0.10.0", "v1.0.0",
	}
	for _, tt := range []struct {
		tool string
		of   func(versions) string
		less func(a, b string) *exec.Cmd
	}{
		{"dpkg", func(v versions) string { return v.deb }, func(a, b string) *exec.Cmd { return exec.Command("dpkg", "--compare-versions", a, "lt", b) }},
		{"rpm", func(v versions) string { return v.rpm }, func(a, b string) *exec.Cmd {
			return exec.Command("sh", "-c", fmt.Sprintf(`test "$(rpm --eval '%%{lua:print(rpm.vercmp("%s", "%s"))}')" = -1`, a, b))
		}},
		{"vercmp", func(v versions) string { return v.arch }, func(a, b string) *exec.Cmd {
			return exec.Command("sh", "-c", `test "$(vercmp "$1" "$2")" = -1`, "sh", a, b)
		}},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			need(t, tt.tool)
			for i := range inOrder[1:] {
				a, errA := packageVersions(inOrder[i])
				b, errB := packageVersions(inOrder[i+1])
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				if out, err := tt.less(tt.of(a), tt.of(b)).CombinedOutput(); err != nil {
					t.Errorf("%s is not before %s: %s", tt.of(a), tt.of(b), out)
				}
			}
		})
	}
}

// need skips a test whose tools are not installed.
func need(t *testing.T, tools ...string) {
	t.Helper()
	missing := slices.DeleteFunc(tools, func(tool string) bool {
		_, err := exec.LookPath(tool)
		return err == nil
	})
	if len(missing) > 0 {
		t.Skipf("not installed: %s", strings.Join(missing, ", "))
	}
}
