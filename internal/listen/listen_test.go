package listen

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhoIsReachedByOthersSaysSo(t *testing.T) {
	for _, c := range []struct {
		name  string
		where Where
		fault string // "": none
	}{
		{"loopback", Where{Listen: "127.0.0.1:7151"}, ""},
		{"loopback anywhere in its net", Where{Listen: "127.9.9.9:7151"}, ""},
		{"loopback of IPv6", Where{Listen: "[::1]:7151"}, ""},
		{"loopback of IPv4 in IPv6", Where{Listen: "[::ffff:127.0.0.1]:7151"}, ""},
		{"localhost", Where{Listen: "localhost:7151"}, ""},
		{"a socket", Where{Listen: "unix:/run/rocm-nightly/page.sock"}, ""},
		{"systemd", Where{Listen: "systemd"}, ""},
		{"off", Where{Listen: "off"}, ""},
		{"wildcard", Where{Listen: ":7151"}, "listen: others reach :7151"},
		{"wildcard of IPv4", Where{Listen: "0.0.0.0:7151"}, "set tls_cert and tls_key; or public: true"},
		{"wildcard of IPv6", Where{Listen: "[::]:7151"}, "others reach"},
		{"an address", Where{Listen: "192.0.2.7:7151"}, "others reach"},
		{"a name, whatever it resolves to", Where{Listen: "localhost.example.net:7151"}, "others reach"},
		{"public by word", Where{Listen: "0.0.0.0:7151", Public: true}, ""},
		{"with TLS", Where{Listen: "0.0.0.0:7151", TLSCert: "/c", TLSKey: "/k"}, ""},
		{"half of TLS", Where{Listen: "0.0.0.0:7151", TLSCert: "/c"}, "tls_cert: and tls_key belong together"},
		{"relative", Where{Listen: "127.0.0.1:1", TLSCert: "c", TLSKey: "/k"}, `tls_cert: "c" is not an absolute path`},
		{"nothing", Where{}, "is not host:port"},
		{"no port", Where{Listen: "127.0.0.1"}, "is not host:port"},
		{"named port", Where{Listen: "127.0.0.1:http"}, "not the number of a port"},
		{"too large a port", Where{Listen: "127.0.0.1:65536"}, "not the number of a port"},
		{"a URL", Where{Listen: "http://127.0.0.1:1"}, "is not host:port"},
		{"relative socket", Where{Listen: "unix:page.sock"}, "not unix: and an absolute path"},
		{"long socket", Where{Listen: "unix:/" + strings.Repeat("a", 120)}, "at most 100 bytes"},
		{"hosts", Where{Listen: "systemd", Hosts: []string{"rocm.example.net", "192.0.2.1"}}, ""},
		{"a host with port", Where{Listen: "systemd", Hosts: []string{"a", "b:80"}}, "hosts[1]: \"b:80\" is not a host name"},
		{"every host", Where{Listen: "systemd", Hosts: []string{"*"}}, "hosts[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []string
			for _, f := range c.where.Check() {
				all = append(all, fmt.Sprintf("%s: %s", f.Key, f.Text))
			}
			got := strings.Join(all, "\n")
			if c.fault == "" && got != "" || !strings.Contains(got, c.fault) {
				t.Errorf("Check says %q, want %q", got, c.fault)
			}
		})
	}
}
