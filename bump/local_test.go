package bump

import (
	"strings"
	"testing"
)

// What only this machine can fetch is offered to repositories of this machine alone.
func TestAddressesOfThisMachineStayHere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		remote, to string
		ok         bool
	}{
		{"https://forge.example/me/flake", "file:///home/jo/mirror/a.tar.gz", false},
		{"ssh://git@forge.example/me/flake", "http://127.0.0.1:8080/a.tar.gz", false},
		{"git@forge.example:me/flake", "http://[::1]:80/a.tar.gz", false},
		{"https://forge.example/me/flake", "https://mirror.example.net/a.tar.gz", true},
		{"https://forge.example/me/flake", "10.2.0a20260930", true},
		{"https://127.0.0.1:3000/me/flake", "http://127.0.0.1:8080/a.tar.gz", true},
		{"/srv/flake.git", "file:///srv/mirror/a.tar.gz", true},
		{"file:///srv/flake.git", "http://localhost:1/a.tar.gz", true},
	} {
		r, err := parseRemote(tt.remote)
		if err != nil {
			t.Fatal(err)
		}
		err = r.local([]Edit{{Path: "pin.nix", Attr: "url", To: tt.to}})
		if (err == nil) != tt.ok || err != nil && strings.Contains(err.Error(), "/home/jo") {
			t.Errorf("%s for %s: %v", tt.to, tt.remote, err)
		}
	}
}

func TestRunRefusesAddressesOfThisMachine(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.f.commitAs("main", "Ada <ada@example.org>", "url", map[string]string{"pin.nix": "{\n  version = \"10.2.0a20260928\";\n  url = \"https://x.example/therock-dist-linux-gfx1151-10.2.0a20260928.tar.gz\";\n}\n"})
	s.repo.Files[0].Set["url"] = "file:///home/jo/{{.Name}}"
	s.repo.Files[0].Fetches = ""
	if res, err := s.try(n30); err == nil || len(s.f.changes) != 0 {
		t.Errorf("%+v, %v, %v", res, err, s.f.changes)
	}
	s.repo.Files[0].Set["url"] = "{{.URL}}"
	if res := s.run(n30); res.Action != ActionOpened {
		t.Errorf("%+v", res)
	}
}
