package pinfile

import "maps"

// codeFormats returns the formats of files that are code: what they pin stands
// in assignments and calls.
func codeFormats() []format {
	return []format{
		{name: "pkgbuild", names: []string{"PKGBUILD"}, parse: parsePkgbuild},
		{name: "srcinfo", names: []string{".SRCINFO"}, parse: parseSrcinfo},
		{name: "starlark", names: []string{"*.bzl", "BUILD", "BUILD.bazel", "WORKSPACE*", "MODULE.bazel", "*.MODULE.bazel"}, parse: parseStarlark},
		{name: "dockerfile", names: []string{"Dockerfile*", "*.Dockerfile", "*.dockerfile", "Containerfile*"}, parse: parseDockerfile},
		{name: "shell", names: []string{"*.sh", "*.bash"}, parse: parseShell},
		{name: "dotenv", names: []string{"*.env", ".env"}, parse: parseDotenv},
		{name: "cmake", names: []string{"CMakeLists.txt", "*.cmake"}, parse: parseCMake},
		{name: "spack", names: []string{"package.py"}, parse: parseSpack},
		{name: "debian-changelog", names: []string{"debian/changelog"}, parse: parseDebianChangelog},
		{name: "debian-watch", names: []string{"debian/watch"}, parse: parseDebianWatch},
	}
}

// withImplied returns set with what doc has to change along with it: the
// pkgrel of a PKGBUILD whose pkgver changes. What set says itself wins.
func withImplied(doc document, set map[string]string) map[string]string {
	d, ok := doc.(interface {
		implied(set map[string]string) map[string]string
	})
	if !ok {
		return set
	}
	more := d.implied(set)
	if len(more) == 0 {
		return set
	}
	out := maps.Clone(more)
	maps.Copy(out, set)
	return out
}

// rewriteWhole edits the documents whose values are not edited in place, such
// as a changelog that gets a new entry; ok is false for all others.
func rewriteWhole(doc document, set map[string]string) (out []byte, ok bool, err error) {
	d, ok := doc.(interface {
		rewrite(set map[string]string) ([]byte, error)
	})
	if !ok {
		return nil, false, nil
	}
	out, err = d.rewrite(set)
	return out, true, err
}
