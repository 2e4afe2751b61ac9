// Package gitlabtest is a stand-in for GitLab in tests: a server of ours that
// keeps projects, merge requests, notes, issues and pipelines, and answers as
// GitLab's documentation of its REST API says (https://docs.gitlab.com/api/).
//
// It is no GitLab: GitLab itself needs more than a test's machine has, and what
// the documentation does not say is not known here either. It is strict where
// GitLab is: paths of projects are escaped, lists have pages, what is missing
// is 404, and a title that begins with "Draft:" makes a draft.
package gitlabtest
