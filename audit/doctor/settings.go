package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// setting is a variable that a file gives to logins.
type setting struct {
	name, value string
	file        string
	line        int
}

func (s setting) where() string { return fmt.Sprintf("%d of %s", s.line, s.file) }

// settingRE matches an assignment in sh, fish (set -gx), csh (setenv) and
// environment.d. What depends on a condition is taken all the same.
var settingRE = regexp.MustCompile(`\A\s*(?:export\s+|setenv\s+|set\s+(?:-[a-zA-Z]+\s+|--[a-z]+\s+)+)?([A-Za-z_][A-Za-z0-9_]*)(?:=|\s+)(.*?)\s*\z`)

// loginFiles are read at a login, or by each shell: of the system, then of the
// user.
var loginFiles = struct{ system, user []string }{
	system: []string{"/etc/environment", "/etc/environment.d/*.conf", "/etc/profile", "/etc/profile.d/*.sh", "/etc/profile.d/*.csh", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh/zshenv", "/etc/zsh/zprofile", "/etc/fish/conf.d/*.fish"},
	user: []string{".profile", ".bash_profile", ".bash_login", ".bashrc", ".zshenv", ".zprofile", ".zshrc", ".cshrc", ".tcshrc", ".login", ".pam_environment",
		".config/environment.d/*.conf", ".config/fish/config.fish", ".config/fish/conf.d/*.fish"},
}

// settings lists what those files say of variables that ROCm reads.
func (x *exam) settings() []setting {
	if x.logins != nil {
		return x.logins
	}
	patterns := slices.Clone(loginFiles.system)
	if home := x.home(); home != "" {
		for _, p := range loginFiles.user {
			patterns = append(patterns, path.Join(home, p))
		}
	}
	x.logins = []setting{}
	for _, p := range patterns {
		for _, file := range x.glob(p) {
			x.logins = append(x.logins, parseSettings(file, x.text(file))...)
		}
	}
	return x.logins
}

func parseSettings(file, text string) []setting {
	var all []setting
	n := 0
	for line := range strings.Lines(text) {
		n++
		m := settingRE.FindStringSubmatch(line)
		if m == nil || !concerns(m[1]) || len(all) >= 4096 {
			continue
		}
		if value := firstWord(m[2]); value != "" { // an empty one takes a variable away
			all = append(all, setting{m[1], value, file, n})
		}
	}
	return all
}

// firstWord is what a shell takes for the first word of a text: comments and
// other commands may follow it.
func firstWord(s string) string {
	var b strings.Builder
	quote := rune(0)
	escaped := false
	for _, r := range s {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'':
			quote = r
		case strings.ContainsRune(" \t;&|)", r):
			return b.String()
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// readers are the prefixes and names of variables that ROCm, the loader or both
// read.
var readers = []string{"HSA_", "HIP_", "HIPCC_", "HIPBLASLT_", "ROCR_", "ROCM_", "ROCBLAS_", "ROC_", "AMD_", "GPU_", "MIOPEN_", "RCCL_", "KPACK_", "TENSILE_"}

// concerns reports whether a variable is read by one of them.
func concerns(name string) bool {
	switch name {
	case "LD_LIBRARY_PATH", "LD_PRELOAD", "LLVM_PATH", "DEVICE_LIB_PATH", "HIPCXX", "CUDA_VISIBLE_DEVICES", "PYTORCH_ROCM_ARCH":
		return true
	}
	if strings.HasPrefix(name, "ROCM_NIGHTLY_") {
		return false
	}
	return slices.ContainsFunc(readers, func(p string) bool { return strings.HasPrefix(name, p) })
}
