package priority

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary play a process that gives way: it is not taken back.
func TestMain(m *testing.M) {
	if name := os.Getenv("PRIORITY_TEST_LEVEL"); name != "" {
		if err := play(strings.Split(name, ",")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// play sets the levels and prints what every thread has then.
func play(names []string) error {
	for _, name := range names {
		if err := Set(name); err != nil {
			return err
		}
	}
	tids, err := threads()
	if err != nil {
		return err
	}
	for _, tid := range tids {
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		if err != nil {
			return err
		}
		io, err := ioprio(tid)
		if err != nil {
			return err
		}
		fmt.Printf("nice %d class %d level %d\n", 20-raw, io>>classShift, io&lastOfClass)
	}
	// A program that it starts, as of the health check, has it too.
	out, err := exec.Command("/bin/sh", "-c", "cut -d' ' -f19 /proc/self/stat").Output()
	fmt.Printf("child %s", out)
	return err
}

func TestEveryThreadGivesWay(t *testing.T) {
	for levels, want := range map[string]string{
		"low": "nice 10 class 2 level 7", "idle": "nice 19 class 3 level 0", "low,idle": "nice 19 class 3 level 0",
		"idle,low": "nice 19 class 3 level 0", "idle,normal": "nice 19 class 3 level 0",
	} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PRIORITY_TEST_LEVEL="+levels)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", levels, err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		child := lines[len(lines)-1]
		if len(lines) < 3 || child != "child "+strings.Fields(want)[1] {
			t.Errorf("%s: %s", levels, out)
		}
		for _, line := range lines[:len(lines)-1] {
			if line != want {
				t.Errorf("%s: %s, want %s", levels, line, want)
			}
		}
	}
}

func TestSetRefuses(t *testing.T) {
	if err := Set("high"); err == nil {
		t.Error("taken")
	}
	for _, name := range []string{"", Normal} {
		if err := Set(name); err != nil {
			t.Error(err)
		}
	}
}
