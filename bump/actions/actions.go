package actions

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// The operations that an output tells, as other actions that open pull requests
// call them.
const (
	Created = "created"
	Updated = "updated"
	Closed  = "closed"
	None    = "none"
)

// Operation is what was done to a request, of the word that a bump has for it
// (opened, updated, pushed, merged, closed, none, waits, ignored).
func Operation(action string) string {
	switch action {
	case "opened":
		return Created
	case "updated", "pushed":
		return Updated
	case "closed", "merged":
		return Closed
	}
	return None
}

// Outcome is what became of one request.
type Outcome struct {
	Repo      string `json:"repo" jsonschema:"name of the bump in the config"`
	Operation string `json:"operation" jsonschema:"created, updated, closed or none"`
	Number    int64  `json:"number" jsonschema:"of the request; 0 if there is none"`
	URL       string `json:"url" jsonschema:"page of the request, or empty"`
	Branch    string `json:"branch"`
	HeadSHA   string `json:"head-sha" jsonschema:"commit that the branch is at, or empty"`
	Version   string `json:"version" jsonschema:"that is offered; empty where targets differ"`
	Changed   bool   `json:"changed" jsonschema:"the wanted files differ from those on the base"`
	Verified  bool   `json:"verified" jsonschema:"the forge vouches for the commit's signature"`
	Message   string `json:"message" jsonschema:"one line for a person"`
	Summary   string `json:"-"` // Markdown for the page of the run, such as the request's body
}

// Bounds of what is written. The runner takes a megabyte of each.
const (
	maxValue   = 256 << 10 // bytes of one output
	maxSummary = 900 << 10 // bytes of the summary
)

// Files are where the runner wants to be told, as it says in the environment;
// "" is nowhere.
type Files struct {
	Output  string // GITHUB_OUTPUT
	Summary string // GITHUB_STEP_SUMMARY
}

// FromEnv returns what an environment says.
func FromEnv(env func(string) string) Files {
	return Files{Output: env("GITHUB_OUTPUT"), Summary: env("GITHUB_STEP_SUMMARY")}
}

// Write appends the outputs and the summary of a run. Outputs of one name, such
// as number and url, are those of the first outcome by which something was done,
// else of the first that has a request, else of the first; results has all, as a
// list in JSON. random makes the words that end values; nil is crypto/rand.
func Write(f Files, outcomes []Outcome, random io.Reader) error {
	if random == nil {
		random = rand.Reader
	}
	if f.Output != "" {
		text, err := outputs(outcomes, random)
		if err != nil {
			return err
		}
		if err := appendTo(f.Output, text); err != nil {
			return fmt.Errorf("write the outputs of the step: %w", err)
		}
	}
	if text := summary(outcomes); f.Summary != "" && text != "" {
		if err := appendTo(f.Summary, text); err != nil {
			return fmt.Errorf("write the summary of the step: %w", err)
		}
	}
	return nil
}

// first is the outcome that single outputs are of.
func first(outcomes []Outcome) Outcome {
	for _, o := range outcomes {
		if o.Operation != None && o.Operation != "" {
			return o
		}
	}
	for _, o := range outcomes {
		if o.Number != 0 {
			return o
		}
	}
	if len(outcomes) > 0 {
		return outcomes[0]
	}
	return Outcome{}
}

// outputs writes every output in the runner's form for values of several lines:
// NAME<<WORD, the value, WORD.
func outputs(outcomes []Outcome, random io.Reader) (string, error) {
	o := first(outcomes)
	if o.Operation == "" {
		o.Operation = None
	}
	if outcomes == nil {
		outcomes = []Outcome{}
	}
	all, err := json.Marshal(outcomes)
	if err != nil {
		return "", fmt.Errorf("write the outputs of the step: %w", err)
	}
	if len(all) > maxValue {
		all = []byte("[]")
	}
	number := ""
	if o.Number != 0 {
		number = strconv.FormatInt(o.Number, 10)
	}
	var b strings.Builder
	for _, v := range [][2]string{
		{"operation", o.Operation}, {"number", number}, {"url", o.URL}, {"branch", o.Branch}, {"head-sha", o.HeadSHA}, {"version", o.Version},
		{"changed", strconv.FormatBool(o.Changed)}, {"verified", strconv.FormatBool(o.Verified)}, {"message", o.Message}, {"results", string(all)},
	} {
		word, err := delimiter(v[1], random)
		if err != nil {
			return "", err
		}
		if len(v[1]) > maxValue {
			v[1] = ""
		}
		b.WriteString(v[0] + "<<" + word + "\n" + v[1] + "\n" + word + "\n")
	}
	return b.String(), nil
}

// delimiter is a word that value does not hold, and that whoever wrote it could
// not know.
func delimiter(value string, random io.Reader) (string, error) {
	for range 10 {
		var raw [16]byte
		if _, err := io.ReadFull(random, raw[:]); err != nil {
			return "", fmt.Errorf("make a word that ends an output: %w", err)
		}
		if word := "end_" + hex.EncodeToString(raw[:]); !strings.Contains(value, word) {
			return word, nil
		}
	}
	return "", fmt.Errorf("make a word that ends an output: the source of random bytes repeats itself")
}

// summary joins what the outcomes have for the page of the run, as many of them
// as fit.
func summary(outcomes []Outcome) string {
	var b strings.Builder
	for i, o := range outcomes {
		if o.Summary == "" {
			continue
		}
		if b.Len()+len(o.Summary) > maxSummary {
			fmt.Fprintf(&b, "\n… and %d more, see the output named results.\n", len(outcomes)-i)
			break
		}
		b.WriteString(strings.TrimRight(o.Summary, "\n") + "\n\n")
	}
	return b.String()
}

// appendTo adds text to a file of the runner, which other steps have written to.
func appendTo(path, text string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	_, err = f.WriteString(text)
	return err
}
