package pinfile

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
