package repack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// What the manifest has of the options gives the same recipe, every one of them.
func TestRecordedOptionsGiveTheSameRecipe(t *testing.T) {
	digest, err := release.ParseDigest(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	const name = "therock-dist-linux-gfx103X-all-10.2.0a20260930.tar.gz"
	for _, o := range []Options{
		{},
		{Layout: LayoutTree, Profile: "nix", RunPath: "runpath", Interpreter: "/lib/ld.so", InterpreterPath: []string{"/bin"}, AddRPath: []string{"/a", "/b"},
			Omit: []string{"tests", "docs"}, Env: map[string]string{"A": "b", "C": ""}, Target: "gfx1036"},
	} {
		o = o.withDefaults()
		recipe, err := Recipe(digest, o)
		if err != nil {
			t.Fatal(err)
		}
		options, err := json.Marshal(o.shape())
		if err != nil {
			t.Fatal(err)
		}
		m := &manifest.Manifest{Digest: digest.String(), Options: options, Recipe: recipe.String(), Name: name, Channel: "nightly", Family: "gfx103X-all", Version: "10.2.0a20260930", Ruleset: wrap.Ruleset}
		got, err := Recorded(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Recipe(digest, got); err != nil || again != recipe {
			t.Errorf("%+v: another recipe, %v", got, err)
		}
		if len(got.Expect) != 1 || got.Expect[0].Digest != digest || got.Release.Name != name || got.Release.Version.String() != m.Version || got.Release.Channel != "nightly" || !SameRules(m) {
			t.Errorf("%+v", got)
		}
	}
	for _, m := range []manifest.Manifest{{Options: []byte("{"), Digest: digest.String()}, {Options: []byte("{}"), Digest: "sha256:x"}} {
		if _, err := Recorded(&m); err == nil {
			t.Errorf("%s was read", m.Options)
		}
	}
}
