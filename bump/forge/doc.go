// Package forge opens and keeps pull requests on GitHub, Gitea, Forgejo and
// GitLab.
//
// Open is the door: it returns the Forge of one repository. What may be done to
// a pull request, and when, is decided elsewhere; here are the forges' own
// calls, with their limits, their errors and their habits.
package forge
