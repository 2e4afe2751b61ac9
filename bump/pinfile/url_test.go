package pinfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	tarballs = "https://nightly.repo.amd.com/rocm/core/tarball"
	moved    = "https://mirror.example.org/rocm"
)

func TestURLsOfFiles(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []string
	}{
		{"flake.nix", []string{tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz"}},
		{"pins.nix", []string{"https://example.org/10.2.0a20260927.tar.gz"}},
		{"pins.json", []string{
			tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz",
			"https://rocm.nightlies.amd.com/tarball/therock-dist-linux-gfx110X-all-10.2.0a20260927.tar.gz",
		}},
		{"npins.json", []string{tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz"}},
		{"pins.json5", []string{tarballs, tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz"}},
		{"matrix.yaml", []string{
			tarballs,
			tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz",
		}},
		{"pins.toml", []string{tarballs, tarballs + "/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz"}},
		{"rocm-nightly.lock", []string{
			tarballs + "/therock-dist-linux-gfx110X-all-10.1.0a20260827.tar.gz",
			"https://stable.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-10.0.0.tar.gz",
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			urls, err := URLs(tt.file, fixture(t, tt.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range urls {
				got = append(got, u.Text)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestURLsAreExpanded(t *testing.T) {
	for _, tt := range []struct{ name, format, src, want string }{
		{"let", "nix", `let v = "1"; in { url = "https://a/${v}"; }`, "https://a/1"},
		{"rec", "nix", `rec { v = "1"; url = "https://a/${v}"; }`, "https://a/1"},
		{"not rec", "nix", `{ v = "1"; url = "https://a/${v}"; }`, "https://a/${v} ?v"},
		{"inner let wins", "nix", `let v = "1"; in let v = "2"; in { url = "https://a/${v}"; }`, "https://a/2"},
		{"let that is over", "nix", `rec { a = let v = "1"; in v; url = "https://a/${v}"; }`, "https://a/${v} ?v"},
		{"argument hides", "nix", `let v = "1"; in { f = { v }: { url = "https://a/${v}"; }; }`, "https://a/${v} ?v"},
		{"argument of one name hides", "nix", `let v = "1"; in { f = v: "https://a/${v}"; }`, "https://a/${v} ?v"},
		{"argument is over", "nix", `let v = "1"; in { f = v: v; url = "https://a/${v}"; }`, "https://a/1"},
		{"default", "nix", `let v = "1"; in { v ? "2", w ? 3, ... }@args: "https://a/${v}${args}"`, "https://a/${v}${args} ?v ?args"},
		{"final", "nix", `mk (finalAttrs: { version = "1"; src = f { url = "https://a/${finalAttrs.version}"; }; })`, "https://a/1"},
		{"final, two", "nix", `mk (final: { version = "1"; a.version = "2"; url = "https://a/${final.version}"; })`, "https://a/${final.version} ?final.version"},
		{"path", "nix", `let p = { x.v = "1"; }; in { url = "https://a/${p.x.v}"; }`, "https://a/1"},
		{"dotted path", "nix", `let p.x.v = "1"; p.y.v = "2"; in { url = "https://a/${p.y.v}"; }`, "https://a/2"},
		{"alias", "nix", `let p = { x = { v = "1"; }; }; q = p.x; in { url = "https://a/${q.v}"; }`, "https://a/1"},
		{"inherit from", "nix", `let p = { v = "1"; }; in let inherit (p) v; in { url = "https://a/${v}"; }`, "https://a/1"},
		{"inherit", "nix", `let v = "1"; in rec { inherit v; url = "https://a/${v}"; }`, "https://a/1"},
		{"inherit from a call", "nix", `let v = "1"; in let inherit (f p) v; in { url = "https://a/${v}"; }`, "https://a/${v} ?v"},
		{"sum", "nix", `let b = "https://a"; in { url = b + "/c/" + ("d" + ".e"); }`, "https://a https://a/c/d.e"},
		{"sum with a call", "nix", `{ url = "https://a/" + f "b"; }`, `https://a/${+ f "b"} ?+ f "b"`},
		{"call", "nix", `{ url = "https://a/${toString 1}"; }`, "https://a/${toString 1} ?toString 1"},
		{"call of a string", "nix", `fetchTarball "https://a/b"`, "https://a/b"},
		{"list", "nix", `let v = "1"; in { urls = [ "https://a/${v}" "mirror://b/${v}" ]; }`, "https://a/1 mirror://b/1"},
		{"no quotes", "nix", `{ url = https://a/b; }`, "https://a/b"},
		{"two quotes", "nix", `{ url = ''https://a/b''; }`, "https://a/b"},
		{"escape", "nix", `{ url = "https://a/\${v}"; }`, "https://a/${v}"},
		{"cycle", "nix", `let a = "x${b}"; b = "y${a}"; in { url = "https://a/${a}"; }`, "https://a/xyxyxyxy"},
		{"with", "nix", `with p; { url = "https://a/${v}"; }`, "https://a/${v} ?v"},
		{"with and let", "nix", `let v = "1"; in with p; assert q; { url = "https://a/${v}"; }`, "https://a/1"},
		{"old let", "nix", `let { v = "1"; body = "https://a/${v}"; }`, "https://a/1"},
		{"comment", "nix", "{ # url = \"https://a/b\";\n}", ""},

		{"object around", "json", `{"v": "1", "a": {"url": "https://a/${v}"}}`, "https://a/1"},
		{"same object first", "json", `{"v": "1", "a": {"v": "2", "url": "https://a/$v"}}`, "https://a/2"},
		{"only one anywhere", "json", `{"b": {"v": "1"}, "a": {"url": "https://a/{{ b.v }}"}}`, "https://a/1"},
		{"two elsewhere", "json", `{"b": {"v": "1"}, "c": {"v": "2"}, "a": {"url": "https://a/{v}"}}`, "https://a/${v} ?v"},
		{"in its own terms", "json", `{"v": "x$v", "url": "https://a/$v"}`, "https://a/x${v} ?v"},
		{"passed on by its own name", "yaml", "context:\n  v: '1'\npackage:\n  v: ${{ v }}\nsource:\n  url: https://a/${{ v }}\n", "https://a/1"},
		{"passed on beside it", "yaml", "context:\n  v: '1'\nsource:\n  v: ${{ context.v }}\n  url: https://a/${{ v }}\n", "https://a/1"},
		{"shell", "yaml", "run: |\n  curl -O https://a/${V:-1}/b.\n", "https://a/${V:-1}/b ?V:-1"},
		{"in prose", "yaml", "text: see https://a/b, or (https://c/d).\n", "https://a/b https://c/d"},
		{"number", "toml", "v = 1\nurl = 'https://a/{v}'\n", "https://a/1"},
		{"regex", "regex", "version=1\nget https://a/${version}.gz\n", "https://a/1.gz"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			urls, err := URLs("f", []byte(tt.src), Options{Format: tt.format, Pattern: fuzzPattern})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range urls {
				got = append(got, u.Text)
				for _, name := range u.Unknown {
					got = append(got, "?"+name)
				}
			}
			text := strings.Join(got, " ")
			if tt.name == "cycle" && strings.HasPrefix(text, tt.want) && len(urls[0].Unknown) > 0 {
				return
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

func TestRebase(t *testing.T) {
	for _, tt := range []struct{ name, format, src, want, err string }{
		{"literal", "nix", `let v = "1"; in { url = "https://a/b/c-${v}"; }`, `let v = "1"; in { url = "https://mirror.example.org/rocm/c-${v}"; }`, ""},
		{"name at the front", "nix", `let b = "https://a/b"; in { url = "${b}/c"; }`, `let b = "https://mirror.example.org/rocm"; in { url = "${b}/c"; }`, ""},
		{"name with its slash", "nix", `let b = "https://a/b/"; in { url = b + "c"; }`, `let b = "https://mirror.example.org/rocm/"; in { url = b + "c"; }`, ""},
		{"sum", "nix", `{ url = "https://a" + "/b/c"; }`, `{ url = "https://mirror.example.org/rocm/c"; }`, ""},
		{"name in the middle", "nix", `let d = "b"; in { url = "https://a/${d}/c"; }`, "", "line 1:25: its host and directory are put together from other values (write https://mirror.example.org/rocm/c there)"},
		{"host of its own", "nix", `let h = "a"; in { url = "https://${h}/b/c"; }`, `let h = "mirror.example.org"; in { url = "https://${h}/rocm/c"; }`, ""},
		{"host behind", "nix", `rec { url = "http://${h}/rocm/c"; h = "a"; }`, `rec { url = "https://${h}/rocm/c"; h = "mirror.example.org"; }`, ""},
		{"host and directory", "toml", "h = 'a'\nd = '/b'\nurl = 'https://{h}{d}/c'\n", "h = 'mirror.example.org'\nd = '/rocm'\nurl = 'https://{h}{d}/c'\n", ""},
		{"family below the host", "nix", `let d = "b"; h = "a"; in { url = "https://${h}/x/${d}/c"; }`, "", "are put together"},
		{"unknown host", "nix", `{ url = "https://${h}/b/c"; }`, "", "are put together"},
		{"unknown name", "nix", `{ url = "https://a/${d}/c"; }`, "", "are put together"},
		{"no path", "nix", `{ url = "https://a"; }`, "", "has no path"},
		{"json", "json", `{"url": "https://a/b/c"}`, `{"url": "https://mirror.example.org/rocm/c"}`, ""},
		{"json escapes", "json", `{"url": "https:\/\/a\/b\/c"}`, "", "are put together"},
		{"query", "json", `{"url": "https://a/b/c?d=/e"}`, `{"url": "https://mirror.example.org/rocm/c?d=/e"}`, ""},
		{"yaml", "yaml", "é: ü\nurl: https://a/b/c # d\n", "é: ü\nurl: https://mirror.example.org/rocm/c # d\n", ""},
		{"toml", "toml", "url = 'https://a/b/c'\n", "url = 'https://mirror.example.org/rocm/c'\n", ""},
		{"there already", "toml", "url = 'https://mirror.example.org/rocm/c'\n", "url = 'https://mirror.example.org/rocm/c'\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Format: tt.format}
			urls, err := URLs("f", []byte(tt.src), o)
			if err != nil || len(urls) == 0 {
				t.Fatal(urls, err)
			}
			out, err := urls[len(urls)-1].Rebase([]byte(tt.src), moved+"/")
			switch {
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("got %v, want %q in it", err, tt.err)
			case tt.err == "" && err != nil:
				t.Error(err)
			case tt.err == "" && string(out) != tt.want:
				t.Errorf("got %s", out)
			}
		})
	}
	u := URL{Text: "https://a/b", Pieces: []Piece{{"https://a/b", 0, 11}}}
	for _, dir := range []string{"", "mirror.example.org", "https://a/\"; evil", "https://a/${b}", "https://a/../b", "https://a/b\n", "https://u:p w@a"} {
		if out, err := u.Rebase([]byte("https://a/b"), dir); err == nil {
			t.Errorf("%q was written: %s", dir, out)
		}
	}
	if _, err := u.Rebase([]byte("https"), moved); err == nil {
		t.Error("another file was edited")
	}
}

func TestURLsOfHostileFilesEnd(t *testing.T) {
	for _, unit := range []string{
		`let a = "1"; in `, `a: `, `{ a, b }: `, `rec { a = "${a}"; } `, `"https://a/${b}" `, `[ "https://a" ] `, `x = "https://${y}"; `, `let inherit (a) b; in `,
	} {
		src := "let y = \"1\"; in [ " + strings.Repeat("(", 3) + strings.Repeat(unit, 20_000/len(unit))
		src += `"https://a/${a}"` + strings.Repeat(")", 3) + " ]"
		_, _ = URLs("a.nix", []byte(src), Options{})
	}
	bomb := "let a0 = \"https://aaaaaaaa\";\n"
	for i := range 20 {
		bomb += fmt.Sprintf("a%d = \"${a%d}${a%d}\";\n", i+1, i, i)
	}
	if _, err := URLs("a.nix", []byte(bomb+"in a20"), Options{}); err != nil {
		t.Error(err)
	}
}
