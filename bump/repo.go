package bump

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nameRE is a Repo.Name, which is part of a branch's name.
var nameRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ownerRE is a Repo.Fork: an owner, or on GitLab a path of groups.
var ownerRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,200}$`)

// What keys with a choice take; the first is the default.
const (
	modePull, modePush               = "pull", "push"
	requireAll, requireAvailable     = "all", "available"
	groupLockstep, groupIndependent  = "lockstep", "independent"
	reopenNext, reopenAlways         = "next", "always"
	autoMergeOff, autoMergePlatform  = "off", "platform"
	methodMerge, methodSquash        = "merge", "squash"
	methodRebase                     = "rebase"
	defaultCheckTimeout              = 10 * time.Minute
	maxCheckTimeout                  = 24 * time.Hour
	maxLabels                        = 50
	defaultAuthorName, defaultDomain = "rocm-nightly", "rocm-nightly@localhost"
)

// CheckRepo reports what is wrong with repo as far as it can be told without
// the network and without pins.
func CheckRepo(repo Repo) error {
	repo, _ = withDefaults(repo, Options{})
	if _, err := parseRemote(repo.URL); err != nil {
		return err
	}
	if err := checkRepo(repo); err != nil {
		return err
	}
	if len(repo.Files) == 0 {
		return errNoFiles
	}
	for _, f := range repo.Files {
		if err := checkFile(f); err != nil {
			return err
		}
	}
	return nil
}

// checkRepo checks all of repo but its address and files.
func checkRepo(repo Repo) error {
	if !nameRE.MatchString(repo.Name) {
		return errors.New("read name: it must be letters, digits, '.', '_' and '-', and begin with a letter or digit")
	}
	for _, c := range []struct {
		key, value string
		known      []string
	}{
		{"forge", repo.Forge, []string{"git", "github", "gitea", "gitlab"}},
		{"mode", repo.Mode, []string{modePull, modePush}},
		{"group", repo.Group, []string{groupLockstep, groupIndependent}},
		{"reopen", repo.Reopen, []string{reopenNext, reopenAlways}},
		{"merge_method", repo.MergeMethod, []string{methodMerge, methodSquash, methodRebase}},
	} {
		if !slices.Contains(c.known, c.value) {
			return fmt.Errorf("read %s: %.40q is not known (known: %s)", c.key, c.value, strings.Join(c.known, ", "))
		}
	}
	if repo.Require != requireAll && repo.Require != requireAvailable {
		return fmt.Errorf("read require: %.40q is neither all nor available", repo.Require)
	}
	if repo.Mode == modePush && repo.Forge != "git" {
		return fmt.Errorf("read mode: push is for forge git, and this one is %s (leave mode out, or write forge: git)", repo.Forge)
	}
	if err := errors.Join(checkBranch(repo.Branch), checkAuthor(repo.Author)); err != nil {
		return err
	}
	if repo.Base != "" {
		if err := checkBranch(repo.Base); err != nil {
			return err
		}
	}
	return checkPolicy(repo)
}

// checkPolicy checks what says when something is done, and with whom.
func checkPolicy(repo Repo) error {
	if repo.Fork != "" && !ownerRE.MatchString(repo.Fork) {
		return fmt.Errorf("read fork: %.40q is not an owner (want never, an owner, or nothing)", repo.Fork)
	}
	if _, err := mergeAfter(repo.AutoMerge); err != nil {
		return err
	}
	for _, w := range repo.Windows {
		if _, err := w.parse(); err != nil {
			return err
		}
	}
	if repo.MaxWait < 0 || repo.MinAge < 0 || repo.OpenLimit < 0 || repo.PullsPerHour < 0 || repo.CommitsPerHour < 0 {
		return errors.New("read limits: max_wait, min_age and limits must not be negative")
	}
	if repo.CheckTimeout < 0 || repo.CheckTimeout > maxCheckTimeout {
		return fmt.Errorf("read check_timeout: %s is not between 0 and %s", repo.CheckTimeout, maxCheckTimeout)
	}
	for _, argv := range repo.Check {
		if len(argv) == 0 || strings.TrimSpace(argv[0]) == "" {
			return errors.New("read check: a command is empty (write it as a list, e.g. [nix, flake, check])")
		}
	}
	if len(repo.Labels) > maxLabels {
		return fmt.Errorf("read labels: %d are too many (at most %d)", len(repo.Labels), maxLabels)
	}
	_, err := summaryTexts(repo, trial(repo.Name))
	return err
}

// trial is what titles, messages and labels are tried on before anything is known:
// nothing of it is empty, or a title that is a version alone would be.
func trial(name string) Summary {
	return Summary{Name: name, Old: "1", New: "2", Targets: []string{"x"}, Families: []string{"x"}, Pins: []Pin{{Version: "2", Family: "x", Target: "x", Date: "d"}}, Date: "d", Title: "x", Body: "x"}
}

// mergeAfter reads AutoMerge: how long a request is open before we merge it,
// 0 where that is off or the platform's affair.
func mergeAfter(policy string) (time.Duration, error) {
	if policy == autoMergeOff || policy == autoMergePlatform {
		return 0, nil
	}
	d, err := time.ParseDuration(policy)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("read auto_merge: %.40q is neither off, platform nor a duration such as 24h", policy)
	}
	return d, nil
}

func checkAuthor(a Author) error {
	bad := func(s string) bool {
		return strings.TrimSpace(s) == "" || strings.ContainsAny(s, "<>") || strings.ContainsFunc(s, isControl)
	}
	if bad(a.Name) || bad(a.Email) {
		return fmt.Errorf("read author: %.60q <%.60q> is not a name and an address", a.Name, a.Email)
	}
	return nil
}

// withDefaults fills what a zero Repo and Options leave open.
func withDefaults(repo Repo, o Options) (Repo, Options) {
	fill := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	fill(&repo.Forge, "git")
	fill(&repo.Mode, modePull)
	fill(&repo.Require, requireAll)
	fill(&repo.Group, groupLockstep)
	fill(&repo.Reopen, reopenNext)
	fill(&repo.AutoMerge, autoMergeOff)
	fill(&repo.MergeMethod, methodMerge)
	fill(&repo.Branch, "rocm-nightly/"+repo.Name)
	fill(&o.Depth, DepthFull)
	if repo.Author == (Author{}) {
		repo.Author = Author{defaultAuthorName, defaultDomain}
	}
	if repo.CheckTimeout == 0 {
		repo.CheckTimeout = defaultCheckTimeout
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return repo, o
}
