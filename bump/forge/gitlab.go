package forge
func newGitLab(c Config) (Forge, error) { return newGitea(c) }
