// Package githubtest is a small GitHub for tests: the part of the REST and
// GraphQL APIs that a bump needs, with state, over real git objects.
//
// New starts it. Users, tokens, Apps and repositories are added by methods, and
// so is what people do: push, close, merge, comment, label, protect. Fail makes
// requests fail as GitHub, or the way to it, fails.
//
// Trees and commits are made by git itself, so that their ids are those that
// GitHub would give. What it answers has the shape of GitHub's own OpenAPI
// description, which the tests of bump/forge check with a validating proxy.
package githubtest
