package web

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// description is openapi.yaml, as far as tests need it.
type description struct {
	Paths      map[string]map[string]any
	Components struct {
		Schemas map[string]struct {
			Required   []string
			Properties map[string]struct {
				Description string
			}
		}
	}
}

func describe(t *testing.T) description {
	t.Helper()
	b, err := files.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := yaml.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// What is answered under /api and what is described are the same.
func TestEveryRouteIsDescribed(t *testing.T) {
	s, err := newServer(Options{Source: hub(quiet()), Metrics: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	d, seen := describe(t), map[string]bool{}
	for _, r := range s.routes() {
		watched := strings.HasPrefix(r.path, "/api/") || r.path == "/healthz" || r.path == "/readyz" || r.path == "/metrics"
		if !watched {
			continue
		}
		seen[r.path] = true
		for method := range r.methods {
			if d.Paths[r.path][strings.ToLower(method)] == nil {
				t.Errorf("%s %s is not described", method, r.path)
			}
		}
		if len(d.Paths[r.path]) != len(r.methods) {
			t.Errorf("%s: %d methods are described, and there are %d", r.path, len(d.Paths[r.path]), len(r.methods))
		}
	}
	for path := range d.Paths {
		if !seen[path] {
			t.Errorf("%s is described, and nothing answers", path)
		}
	}
}

// Every field of a State is in the description, with words, and nothing else is;
// what is always there is required.
func TestEveryFieldIsDescribed(t *testing.T) {
	d, seen := describe(t), map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || seen[typ.Name()] {
			return
		}
		seen[typ.Name()] = true
		schema, n := d.Components.Schemas[typ.Name()], 0
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			n++
			if p, ok := schema.Properties[name]; !ok || p.Description == "" {
				t.Errorf("openapi.yaml does not say what %s.%s is", typ.Name(), name)
			}
			required := false
			for _, r := range schema.Required {
				required = required || r == name
			}
			if required == strings.Contains(rest, "omit") {
				t.Errorf("openapi.yaml: %s.%s is required: %v", typ.Name(), name, required)
			}
			walk(f.Type)
		}
		if n != len(schema.Properties) {
			t.Errorf("openapi.yaml has %d fields of %s, and there are %d", len(schema.Properties), typ.Name(), n)
		}
	}
	walk(reflect.TypeFor[state.State]())
}

// prism starts a proxy before server that fails whatever breaks the description.
func prism(t *testing.T, server string) string {
	t.Helper()
	for _, tool := range []string{"node", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(root, "scripts", "openapi.sh"), "--print").Output()
	if err != nil {
		t.Skip("prism is not installed: run scripts/openapi.sh")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "node", filepath.Join(strings.TrimSpace(string(out)), "node_modules/.bin/prism"), "proxy", "openapi.yaml", server, "--errors", "--host", "127.0.0.1", "--port", "0")
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	at := make(chan string, 1)
	go func() {
		defer close(at)
		for scanner := bufio.NewScanner(pipe); scanner.Scan(); {
			if _, url, ok := strings.Cut(scanner.Text(), "is listening on "); ok {
				at <- strings.TrimSpace(url)
			}
		}
	}()
	select {
	case url, ok := <-at:
		if !ok {
			t.Fatal("prism has ended")
		}
		return url
	case <-time.After(2 * time.Minute):
		t.Fatal("prism does not start")
	}
	return ""
}

// Real answers are as they are described: a proxy that knows the description
// stands between.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	const slot = "nightly-gfx1151"
	ready := true
	_, ts := start(t, Options{Source: hub(failed()), Actions: new(deeds), Token: testToken,
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/plain") }),
		Ready: func() error {
			if ready = !ready; ready {
				return context.Canceled
			}
			return nil
		}})
	proxy := prism(t, ts.URL)
	token := []string{"Authorization", "Bearer " + testToken}
	_, whole := ask(t, "GET", ts.URL+"/api/v1/state", "")
	res, _ := ask(t, "GET", ts.URL+"/api/v1/state", "")
	for _, c := range []struct {
		method, path, body string
		status             int
		header             []string
	}{
		{"GET", "/api/v1/state", "", 200, nil},
		{"GET", "/api/v1/state", "", 304, []string{"If-None-Match", res.Header.Get("ETag")}},
		{"GET", "/api/v1/slots", "", 200, nil},
		{"GET", "/api/v1/slots/" + slot, "", 200, nil},
		{"GET", "/api/v1/slots/none", "", 404, nil},
		{"GET", "/api/v1/slots/" + slot + "/runs", "", 200, nil},
		{"GET", "/api/v1/slots/none/runs", "", 404, nil},
		{"GET", "/api/v1/jobs", "", 200, nil},
		{"GET", "/api/v1/alarms", "", 200, nil},
		{"GET", "/api/v1/bumps", "", 200, nil},
		{"GET", "/api/v1/indexes", "", 200, nil},
		{"GET", "/api/v1/openapi.yaml", "", 200, nil},
		{"GET", "/healthz", "", 200, nil},
		{"GET", "/readyz", "", 200, nil},
		{"GET", "/readyz", "", 503, nil},
		{"GET", "/metrics", "", 200, nil},
		{"POST", "/api/v1/jobs/update/run", "", 202, token},
		{"POST", "/api/v1/jobs/none/run", "", 404, token},
		{"POST", "/api/v1/slots/" + slot + "/rollback", "", 200, token},
		{"POST", "/api/v1/slots/" + slot + "/unhold", "", 200, token},
		{"POST", "/api/v1/slots/" + slot + "/use", `{"version": "10.2.0a20260929"}`, 200, append(token, "Content-Type", "application/json")},
		{"POST", "/api/v1/slots/" + slot + "/use", `{"version": "10.2.0a19990101"}`, 404, append(token, "Content-Type", "application/json")},
		{"POST", "/api/v1/slots/" + slot + "/rollback", "", 401, []string{"Authorization", "Bearer wrong"}},
	} {
		res, body := ask(t, c.method, proxy+c.path, c.body, append([]string{"Accept", "*/*"}, c.header...)...)
		if broken := res.Header.Get("Sl-Violations"); res.StatusCode != c.status || strings.Contains(broken, `"Error"`) {
			t.Errorf("%s %s: %s, want %d\n%s\n%.600s", c.method, c.path, res.Status, c.status, broken, body)
		}
		if c.path == "/api/v1/state" && c.status == 200 && len(body) < len(whole)/2 {
			t.Errorf("the proxy answers with something else: %.200s", body)
		}
	}
}
