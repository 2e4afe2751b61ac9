package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestOmitIsCheckedWhereItStands(t *testing.T) {
	for _, src := range []string{"repack:\n  omit: [docs, test]\n", "installs:\n  - target: gfx1151\n    repack:\n      omit: [kernel]\n"} {
		err := Decode(Default(), "x.yaml", []byte(src))
		if err == nil {
			t.Fatalf("%s was taken", src)
		}
		line := map[bool]string{true: "x.yaml:2:16: repack.omit[1]", false: "x.yaml:4:14: installs[0]"}[strings.HasPrefix(src, "repack")]
		for _, want := range []string{line, "omit", "databases, docs, kernels, llvm, static, tests"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}
	}
}

func TestOmitOfAnInstall(t *testing.T) {
	c := Default()
	src := `
repack: {omit: [docs, tests]}
installs:
  - target: gfx1151
  - target: gfx1036
    repack: {omit: [kernels]}
  - target: gfx110X-all
    repack: {omit: []}
`
	if err := Decode(c, "x", []byte(src)); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, in := range c.Installs {
		got = append(got, c.RepackOf(in).Leaves())
	}
	if want := [][]string{{"docs", "tests"}, {"kernels"}, nil}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if got := c.Repack.Leaves(); !reflect.DeepEqual(got, []string{"docs", "tests"}) {
		t.Errorf("an install changed the top level: %q", got)
	}
}

// What is of other targets wants one target: a family is none.
func TestOmitWantsATarget(t *testing.T) {
	for src, want := range map[string]string{
		"installs: [{target: gfx110X-all}]\nrepack: {omit: [kernels]}":                     "installs[0].target: to leave out kernels",
		"installs: [{target: multiarch, repack: {omit: [docs, databases]}}]":               "installs[0].target: to leave out databases",
		"repack: {omit: [kernels]}\n":                                                      "", // auto
		"installs: [{target: \"RX 7900 XTX\", repack: {omit: [kernels]}}]":                 "",
		"installs: [{target: gfx110X-all, repack: {omit: [docs]}}]":                        "",
		"installs: [{target: gfx110X-all, repack: {omit: []}}]\nrepack: {omit: [kernels]}": "",
	} {
		c := Default()
		if err := Decode(c, "x", []byte(src)); err != nil {
			t.Fatal(err)
		}
		err := c.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
