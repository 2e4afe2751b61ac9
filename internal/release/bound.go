package release

// ParseBound reads one end of a range of versions: a version, or a series
// such as 10.1, which stands for all that leads up to it. PEP 440 puts 10.1
// behind its own nights, and who says that something begins with 10.1 means
// those too: the bound is then 10.1.0.dev0. "" is the zero Version.
func ParseBound(s string) (Version, error) {
	if s == "" {
		return Version{}, nil
	}
	series, errSeries := ParseVersion(s + ".0.dev0") // s may be a major alone
	v, err := ParseVersion(s)
	if errSeries == nil && (err != nil || v.Base() == s) {
		return series, nil
	}
	return v, err
}
