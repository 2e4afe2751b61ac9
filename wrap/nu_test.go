//go:build heavy

package wrap

import (
	"os/exec"
	"testing"
)

// Debian has no package of nu, so this runs only where somebody installed it.
func TestEnvNu(t *testing.T) {
	nu, err := exec.LookPath("nu")
	if err != nil {
		t.Skip("no nu here: Debian has no package of it, its own releases do")
	}
	source := "source " + environmentPrefix(t) + "/etc/env.nu; ^env | print"
	checkSourcing(t, []string{nu, "-n"}, source+"; print '====='; "+source)
}
