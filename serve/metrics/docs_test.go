package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

const (
	pageMD    = "../../docs/metrics.md"
	alerts    = "../../docs/examples/prometheus-alerts.yaml"
	dashboard = "../../docs/examples/grafana-dashboard.json"
	scrapes   = "../../docs/examples/prometheus-scrape.yaml"
)

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The table of the page is the table of families.go, line by line.
func TestThePageListsEveryMetric(t *testing.T) {
	var want strings.Builder
	for _, f := range families {
		labels, where := "", "both"
		if len(f.labels) > 0 {
			labels = "`" + strings.Join(f.labels, "`, `") + "`"
		}
		if f.live {
			where = "daemon"
		}
		fmt.Fprintf(&want, "| `%s%s` | %s | %s | %s | %s |\n", prefix, f.name, f.kind, labels, where, f.help)
	}
	text := read(t, pageMD)
	got := strings.Join(regexp.MustCompile("(?m)^\\| `"+prefix+".*\n").FindAllString(text, -1), "")
	if got != want.String() {
		t.Errorf("the table of %s is to be:\n%s", pageMD, want.String())
	}
	flat := strings.Join(strings.Fields(text), " ")
	for _, states := range [][]string{state.AlarmKinds(), newestStates, bumpStates} {
		if list := strings.Join(states, ", "); !strings.Contains(flat, list) {
			t.Errorf("%s does not have %s", pageMD, list)
		}
	}
}

// known is what a scrape tells: ours, and those of the process that are used.
func known(t *testing.T) []string {
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(scrape(t, Handler(fixed{full()})), -1) {
		names = append(names, m[1])
	}
	return names
}

var metricName = regexp.MustCompile(`\b(?:rocm_nightly|process|go)_[a-z0-9_]+`)

// told checks that an expression asks for what there is, with labels that it has.
func told(t *testing.T, names []string, where, expr string) {
	t.Helper()
	for _, name := range metricName.FindAllString(expr, -1) {
		if !slices.Contains(names, name) {
			t.Errorf("%s asks for %s, which nothing tells", where, name)
		}
	}
	for _, m := range regexp.MustCompile(`rocm_nightly_([a-z_]+)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		i := slices.IndexFunc(families, func(f family) bool { return f.name == m[1] })
		for _, l := range regexp.MustCompile(`([a-z]+)=`).FindAllStringSubmatch(m[2], -1) {
			if i >= 0 && l[1] != "instance" && !slices.Contains(families[i].labels, l[1]) {
				t.Errorf("%s asks for the label %s, which %s does not have", where, l[1], m[1])
			}
		}
	}
}

// rules is as much of a file of rules as is looked at here.
type rules struct {
	Groups []struct {
		Rules []struct {
			Alert  string
			Expr   string
			Labels map[string]string
		}
	}
}

func TestAlertsAskForWhatThereIs(t *testing.T) {
	var r rules
	if err := yaml.Unmarshal([]byte(read(t, alerts)), &r); err != nil {
		t.Fatal(err)
	}
	names, text, tests := known(t), read(t, pageMD), read(t, "testdata/alerts_test.yaml")+read(t, "testdata/alerts_days_test.yaml")
	n := 0
	for _, g := range r.Groups {
		for _, rule := range g.Rules {
			n++
			told(t, names, rule.Alert, rule.Expr)
			if !strings.Contains(text, fmt.Sprintf("| `%s` | %s |", rule.Alert, rule.Labels["severity"])) {
				t.Errorf("%s says nothing of %s (%s)", pageMD, rule.Alert, rule.Labels["severity"])
			}
			if !regexp.MustCompile(rule.Alert + `\n\s+exp_alerts: (&new )?\[\{`).MatchString(tests) {
				t.Errorf("no test in which %s fires", rule.Alert)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d alerts", n)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian's prometheus) is not installed")
	}
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "check", "rules", alerts)
	promtool(t, "test", "rules", "testdata/alerts_test.yaml", "testdata/alerts_days_test.yaml")
	promtool(t, "check", "config", "--syntax-only", scrapes)
}

// board is as much of a dashboard as Grafana needs to show it.
type board struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

func readBoard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal([]byte(read(t, dashboard)), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDashboardIsWhole(t *testing.T) {
	b := readBoard(t)
	if b.Title == "" || b.UID == "" || b.SchemaVersion < 36 || len(b.Panels) < 15 {
		t.Errorf("%q %q %d, %d panels", b.Title, b.UID, b.SchemaVersion, len(b.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: %+v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !slices.Contains([]string{"stat", "table", "timeseries", "state-timeline"}, p.Type) || p.Description == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: %+v", p.Title, p)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Expr == "" || target.Datasource.UID != "${datasource}" || !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
		}
	}
}

func TestDashboardAsksForWhatThereIs(t *testing.T) {
	b, names := readBoard(t), known(t)
	var queries strings.Builder
	queries.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	variables := strings.NewReplacer("$instance", ".*", "$slot", ".*")
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			told(t, names, p.Title, target.Expr)
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%q uses a variable that there is not: %s", p.Title, target.Expr)
			}
			fmt.Fprintf(&queries, "      - {record: 'panel:%d_%s', expr: '%s'}\n", p.ID, target.RefID, expr)
		}
	}
	for _, v := range b.Templating.List {
		told(t, names, v.Name, v.Definition)
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	if err := os.WriteFile(file, []byte(queries.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
