package forge

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// everything asks f for all that it can do.
func everything(ctx context.Context, f Forge) {
	one, yes := "x", true
	f.Info(ctx)
	f.Pulls(ctx, Query{})
	f.Pulls(ctx, Query{Head: "x"})
	f.Pull(ctx, 1)
	f.OpenPull(ctx, NewPull{Title: "t", Base: "b", Head: "h", HeadRepo: "o/n"})
	f.EditPull(ctx, 1, PullEdit{Title: &one})
	f.EditPull(ctx, 1, PullEdit{State: &one})
	f.Diff(ctx, 1, 10)
	f.AddLabels(ctx, 1, []string{"l"})
	f.RemoveLabel(ctx, 1, "l")
	f.Ask(ctx, 1, []string{"u"}, []string{"o/t"})
	f.Assign(ctx, 1, []string{"u"})
	f.AutoMerge(ctx, 1, "", true, "merge")
	f.AutoMerge(ctx, 1, "", false, "merge")
	f.Merge(ctx, 1, "", "squash")
	f.Checks(ctx, "0123456789012345678901234567890123456789", "b")
	f.Comments(ctx, 1)
	f.AddComment(ctx, 1, "b")
	f.EditComment(ctx, 1, 2, "b")
	f.Issues(ctx, "x")
	f.OpenIssue(ctx, "t", "b", []string{"l"})
	f.EditIssue(ctx, 1, &one, &one, &yes)
	f.Fork(ctx, "")
	f.Fork(ctx, "x")
	if trees, is := f.(Trees); is {
		id := "0123456789012345678901234567890123456789"
		n := NewCommit{Parent: id, Files: []File{{Path: "a/b", Mode: "100644", Text: []byte("x")}, {Path: "c", Mode: "100644"}}}
		trees.Tip(ctx, "b")
		trees.File(ctx, id, "a/b", 10)
		trees.Tree(ctx, n)
		trees.Commit(ctx, n, id)
		trees.Move(ctx, "b", "", id)
		trees.Move(ctx, "b", id, id)
		trees.Remove(ctx, "b", id)
	}
}

// FuzzAnswers: whatever a forge answers, nothing panics or goes on for ever.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		"", "null", "  null ", "[null]", "{}", "[]", "[{}]", "[[]]", `"x"`, "1", "<html>", `{"message":null}`, `{"message":{"a":[{"b":[]}]}}`,
		`{"user":null,"base":null,"head":null,"labels":[null],"assignees":[null],"requested_reviewers":[null],"requested_reviewers_teams":[null],"state":"open"}`,
		`[{"head":{"ref":"x","label":"x","repo":null},"base":{"ref":"b"},"state":"open","number":1,"title":"x","login":"x","username":"x"}]`,
		`{"author":null,"assignees":[null],"reviewers":[null],"sha":"","source_project_id":2,"target_project_id":1,"state":"opened","only_allow_merge_if_pipeline_succeeds":true}`,
		`{"owner":null,"empty":true,"import_status":"scheduled"}`, `{"owner":{"login":"x"},"login":"x","path_with_namespace":"x/y","username":"x","empty":false}`,
		`{"data":null,"errors":[null]}`, `{"tree":[null],"parents":[null],"object":null}`, `{"sha":"0123456789012345678901234567890123456789","tree":null,"commit":null}`,
		`{"total_count":9,"check_runs":[null],"statuses":[null],"protection":{"required_status_checks":{"contexts":["x"]}}}`,
		`[{"type":"required_status_checks","parameters":{"required_status_checks":[null]}}]`, `[{"type":"required_status_checks","parameters":null}]`,
		`[{"path_with_namespace":"/"},{"owner":{"login":"x"},"name":".."},{"status":"failed","source":"push"}]`,
	} {
		for _, status := range []int{200, 201, 204, 302, 401, 403, 404, 405, 409, 422, 429, 500} {
			f.Add(uint16(status-100), body)
		}
	}
	f.Fuzz(func(t *testing.T, status uint16, body string) {
		for _, open := range []func(Config) (Forge, error){newGitHub, newGitea, newGitLab} {
			now, asked := time.Unix(0, 0), 0
			c := Config{
				Web: "https://git.example.org", Owner: "o", Name: "n", Auth: Auth{Token: secret.New("t")}, MaxWait: time.Minute,
				Now:   func() time.Time { return now },
				Sleep: func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil },
				HTTP: answering(func(*http.Request) (*http.Response, error) {
					if asked++; asked > 5000 {
						t.Fatal("it goes on and on")
					}
					return answer(100+int(status)%500, body, map[string]string{"X-Next-Page": "2", "Link": `<https://x/?page=2>; rel="next"`}), nil
				}),
			}
			forge, err := open(c)
			if err != nil {
				t.Fatal(err)
			}
			everything(t.Context(), forge)
		}
	})
}
