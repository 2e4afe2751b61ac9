package lockfile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parsedKey(t testing.TB, text string) Key {
	t.Helper()
	k, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestParseKey(t *testing.T) {
	const line = "RWRapcem9fq6W2gvlT6I073kh1fxVCayxXLLB7kzFEOwMamGqUOpfX6a"
	file := string(testdata(t, "key.pub"))
	for what, text := range map[string]string{
		"the line": line, "the file": file, "spaces": "  " + line + "\r\n", "CRLF": strings.ReplaceAll(file, "\n", "\r\n"),
		"no newline": strings.TrimSpace(file), "no comment": "untrusted comment:\n" + line,
	} {
		k, err := ParseKey(text)
		if err != nil || k.ID() != "5BBAFAF5A6C7A55A" || k.String() != line {
			t.Errorf("%s: %s %s, %v", what, k.ID(), k, err)
		}
	}
	const secret = "UlduMU5rdWdNc0RTVjZqRlRjVjFwN3hzV2hTUTlkVHpoY2M"
	for what, tt := range map[string]struct{ text, say string }{
		"nothing":       {"", "want one line"},
		"a comment":     {"untrusted comment: x\n", "base64"},
		"a path":        {"/etc/rocm-nightly/key.pub", "not a path"},
		"a signature":   {strings.Split(string(testdata(t, "prehashed.minisig")), "\n")[1], "a signature"},
		"a secret key":  {"untrusted comment: minisign encrypted secret key\n" + secret + strings.Repeat("A", 211-len(secret)) + "=", "the secret key"},
		"two keys":      {file + file, "want one line"},
		"two lines":     {line + "\n" + line, "want one line"},
		"a short key":   {line[:52], "bytes"},
		"another kind":  {"QUF" + line[3:], "algorithm"},
		"a longer file": {strings.Repeat(" ", maxKeyLen) + line, "more than"},
	} {
		if k, err := ParseKey(tt.text); err == nil || !strings.Contains(err.Error(), tt.say) || strings.Contains(err.Error(), secret[:12]) {
			t.Errorf("%s: %s, %v", what, k, err)
		}
	}
}

func TestOnlyTheKeysOwnSignatureCounts(t *testing.T) {
	key, other := parsedKey(t, string(testdata(t, "key.pub"))), parsedKey(t, string(testdata(t, "other.pub")))
	message := golden(t)
	for _, kind := range []string{"prehashed", "legacy"} {
		refusals(t, kind, key, other, message, testdata(t, kind+".minisig"), testdata(t, "other.minisig"))
	}
}

// refusals checks that sig is good, and that nothing near to it is.
func refusals(t *testing.T, kind string, key, other Key, message, sig, others []byte) {
	t.Helper()
	text := string(sig)
	lines := strings.SplitAfter(text, "\n")
	for what, good := range map[string]string{
		"as it is":                text,
		"another untrusted one":   "untrusted comment: x\n" + strings.Join(lines[1:], ""),
		"with CRLF":               strings.ReplaceAll(text, "\n", "\r\n"),
		"without the last newlin": strings.TrimSuffix(text, "\n"),
	} {
		if err := Verify(key, message, []byte(good)); err != nil {
			t.Errorf("%s, %s: %v", kind, what, err)
		}
	}
	refuse := func(what string, k Key, m []byte, s, found, say string) {
		t.Helper()
		var se *SignatureError
		err := Verify(k, m, []byte(s))
		if !errors.As(err, &se) || se.Expected != k.ID() || se.Found != found || !strings.Contains(err.Error(), say) {
			t.Errorf("%s, %s: %+v: %v", kind, what, se, err)
		}
	}
	changed := bytes.Replace(message, []byte("e3b0"), []byte("e3b1"), 1)
	const notSigned = "not what was signed"
	refuse("a changed file", key, changed, text, key.ID(), notSigned)
	refuse("a shorter file", key, message[:len(message)-1], text, key.ID(), notSigned)
	refuse("a longer file", key, append(message[:len(message):len(message)], '\n'), text, key.ID(), notSigned)
	refuse("an empty file", key, nil, text, key.ID(), notSigned)
	refuse("a changed comment", key, message, lines[0]+lines[1]+strings.Replace(lines[2], "comment: ", "comment: x", 1)+lines[3], key.ID(), notSigned)
	refuse("an empty comment", key, message, lines[0]+lines[1]+"trusted comment: \n"+lines[3], key.ID(), notSigned)
	refuse("the other key", other, message, text, key.ID(), "signed with key "+key.ID()+", not with "+other.ID())
	refuse("the other's signature", key, message, string(others), other.ID(), "configure the one that signed")
	otherLines := strings.SplitAfter(string(others), "\n")
	refuse("the other's comment", key, message, lines[0]+lines[1]+otherLines[2]+otherLines[3], key.ID(), notSigned)
	kinds := map[string]string{"RU": "RW", "RW": "RU"}
	refuse("the other kind", key, message, lines[0]+kinds[lines[1][:2]]+lines[1][2:]+lines[2]+lines[3], key.ID(), notSigned)
	for n := range text[:len(text)-1] { // the last newline may be missing
		var se *SignatureError
		if err := Verify(key, message, sig[:n]); !errors.As(err, &se) {
			t.Fatalf("%s, the first %d bytes of it: %v", kind, n, err)
		}
	}
	for what, s := range map[string]string{
		"a line more": text + "x\n", "twice": text + text, "an empty line": text + "\n", "no prefix": strings.Replace(text, "untrusted", "entrusted", 1),
		"no trusted prefix": strings.Replace(text, "\ntrusted", "\ndistrusted", 1), "HTML": "<html>\n\n\n</html>", "long": text + strings.Repeat("\n", maxSignatureLen),
		"another algorithm": lines[0] + "AA" + lines[1][2:] + lines[2] + lines[3],
	} {
		refuse(what, key, message, s, "", "does not count")
	}
	refuse("no key", Key{}, message, text, "", "no key was given")
}

// What Debian's minisign signs here and now counts, and nothing near to it.
func TestMinisignItself(t *testing.T) {
	tool, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("minisign is missing: apt install minisign")
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(tool, args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v\n%s", args, err, out)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	message := golden(t)
	if err := os.WriteFile(at(Name), message, 0o600); err != nil {
		t.Fatal(err)
	}
	run("-G", "-W", "-p", at("key.pub"), "-s", at("key.sec"))
	run("-G", "-W", "-p", at("other.pub"), "-s", at("other.sec"))
	run("-S", "-s", at("key.sec"), "-m", at(Name))
	run("-S", "-l", "-s", at("key.sec"), "-m", at(Name), "-x", at("legacy"), "-t", "a comment")
	run("-S", "-s", at("other.sec"), "-m", at(Name), "-x", at("others"))
	key, other := parsedKey(t, string(read("key.pub"))), parsedKey(t, string(read("other.pub")))
	if !strings.Contains(string(read("key.pub")), "public key "+key.ID()+"\n") {
		t.Errorf("minisign does not call its key %s", key.ID())
	}
	refusals(t, "prehashed", key, other, message, read(Name+SignatureSuffix), read("others"))
	refusals(t, "legacy", key, other, message, read("legacy"), read("others"))
	if _, err := ParseKey(string(read("key.sec"))); err == nil || !strings.Contains(err.Error(), "the secret key") {
		t.Errorf("a secret key: %v", err)
	}
}
