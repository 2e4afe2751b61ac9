package bump

import (
	"os"
	"testing"
)

const (
	newVersion = "10.2.0a20260930"
	newSRI     = "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="
	newHex     = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	newNix32   = "1b8m03r63zqhnjf7l5wnldhh7c134ap5vpj0850ymkq1iyzicy5s"
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	src, err := os.ReadFile("pinfile/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// readText is what a file holds; "" if there is none.
func readText(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}
