package pinfile

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzCodeFormats: whatever the file, the key and the value, reading ends
// without a panic, an edit replaces its own bytes alone, and what was written
// reads back; a second edit changes nothing.
func FuzzCodeFormats(f *testing.F) {
	formats := codeFormats()
	seed := func(format, src, key, value string) {
		for i, x := range formats {
			if x.name == format {
				f.Add(uint8(i), src, key, value)
			}
		}
	}
	seed("pkgbuild", string(codeFixture(f, "PKGBUILD")), "pkgver", "10.2.0a20261001")
	seed("pkgbuild", "a=(1 [3]='x' \"${b[@]}\" {c,d}) pkgver=${a%%x}${a/b/c}", "a[0]", "v")
	seed("srcinfo", string(codeFixture(f, "SRCINFO")), "pkgbase.pkgver", "2")
	seed("starlark", string(codeFixture(f, "redist.bzl")), "ROCM_REDIST.gfx1151.sha256", codeNewHex)
	seed("starlark", "A = r'x' 'y'\nB = '%s' % A\nC = '{}'.format(A)\nd(e = [1, {'f': \"g\"}])", "d.e[1].f", "z")
	seed("dockerfile", string(codeFixture(f, "Dockerfile")), "build.ROCM_VERSION", "2")
	seed("dockerfile", "# escape=`\nFROM a\nENV A b c\nRUN <<E\nx\nE\n", "A", "v w")
	seed("shell", "export A=\"b\\$\" C='d'\nf() { local e=${A:-x}; }\n", "A", "$x")
	seed("dotenv", "A=b\nC=\"d e\"\n", "C", "f g")
	seed("cmake", string(codeFixture(f, "rocm.cmake")), "rocm.URL_HASH", codeNewHex)
	seed("spack", string(codeFixture(f, "package.py")), "version[0]", "2")
	seed("debian-changelog", string(codeFixture(f, "changelog")), "version", "2-1")
	seed("debian-watch", string(codeFixture(f, "watch")), "url", "https://example.org/x")
	f.Fuzz(func(t *testing.T, n uint8, source, key, value string) {
		checkCodeEdit(t, formats[int(n)%len(formats)], []byte(source), key, value)
	})
}

// checkCodeEdit checks what every edit promises.
func checkCodeEdit(t *testing.T, format format, src []byte, key, value string) {
	t.Helper()
	doc, err := format.parse(src, Options{})
	if err != nil {
		return
	}
	for _, u := range doc.urls() {
		checkURL(t, src, u)
	}
	if format.name == "pkgbuild" {
		_, _ = SrcInfo(src)
	}
	sites, _, err := doc.find(key)
	if err != nil || len(sites) != 1 || sites[0].Problem != "" {
		return
	}
	site := sites[0]
	if _, err := site.Encode(value); err != nil || site.Value == value {
		return
	}
	set := map[string]string{key: value}
	out, spans, err := editCode(format, src, set)
	if err != nil && (strings.Contains(key, "=") || format.name == "srcinfo") && strings.Contains(err.Error(), "match") {
		return // the value that changed is the one that the key selects by
	}
	if err != nil {
		t.Fatalf("%s of\n%s\n%v", key, src, err)
	}
	if len(spans) == 0 { // a new entry on top
		if !bytes.HasSuffix(out, src) {
			t.Fatalf("the old entries changed:\n%s\n%s", src, out)
		}
		return
	}
	pos := spans[len(spans)-1].end
	if first := spans[0].start; !bytes.Equal(src[:first], out[:first]) {
		t.Fatalf("bytes before %v changed:\n%s\n%s", spans, src, out)
	}
	if !bytes.HasSuffix(out, src[pos:]) {
		t.Fatalf("bytes after %v changed:\n%s\n%s", spans, src, out)
	}
	again, _, err := editCode(format, out, set)
	if err != nil || !bytes.Equal(again, out) {
		t.Fatalf("a second edit: %v\n%s\n%s", err, out, again)
	}
}
