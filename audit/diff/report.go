package diff

import "github.com/rocm-nightly/rocm-nightly/internal/manifest"

// Schema is the version of the JSON form of a Report.
const Schema = 1

// Report is what differs between two trees, A the older one. Lists are sorted
// and bounded; counts are of everything.
type Report struct {
	Schema    int             `json:"schema"`
	A         Side            `json:"a"`
	B         Side            `json:"b"`
	Risks     []Risk          `json:"risks" jsonschema:"what may break, the gravest first"`
	Versions  []VersionChange `json:"versions" jsonschema:"ROCm, HIP and LLVM always; of components and packages those that differ"`
	Sources   *Sources        `json:"sources,omitempty" jsonschema:"what the trees were built from, by their therock_manifest.json; absent if neither has one"`
	Files     Files           `json:"files"`
	Groups    []Group         `json:"groups" jsonschema:"files by directory, those with the largest difference in bytes first"`
	Renamed   []Rename        `json:"renamed" jsonschema:"files and directories whose names differ in a version, or that have moved"`
	Added     []Entry         `json:"added" jsonschema:"the largest first"`
	Removed   []Entry         `json:"removed" jsonschema:"the largest first"`
	Changed   []Change        `json:"changed" jsonschema:"files whose published content, kind or mode differs, by path"`
	Grown     []Change        `json:"grown" jsonschema:"what grew most in bytes"`
	GrownMost []Change        `json:"grown_most" jsonschema:"what grew most in percent"`
	Libraries []Library       `json:"libraries" jsonschema:"libraries that lost something others link to"`
	Host      Host            `json:"host" jsonschema:"what is newly asked of the host"`
	Programs  []string        `json:"programs_removed" jsonschema:"commands of bin/ and lib/llvm/bin/ that are gone"`
	Config    []TextChange    `json:"config" jsonschema:"configuration files (*.cfg) that differ, links to them too"`
	Scripts   Scripts         `json:"scripts"`
	Wrapping  *Wrapping       `json:"wrapping,omitempty" jsonschema:"what stands beside the ROCm trees; absent unless both are whole prefixes"`
	Kernels   []Kernels       `json:"kernels" jsonschema:"GPU code by library and target"`
	Notes     []string        `json:"notes" jsonschema:"what could not be compared, and why"`
}

// Side is one of the two trees.
type Side struct {
	Name    string   `json:"name" jsonschema:"as it was asked for"`
	Version string   `json:"version,omitempty" jsonschema:"full version of ROCm, if the tree says it"`
	Digest  string   `json:"digest,omitempty" jsonschema:"of the tarball, sha256:<hex>"`
	Recipe  string   `json:"recipe,omitempty" jsonschema:"digest of tarball, options and ruleset"`
	Layout  string   `json:"layout" jsonschema:"root: a prefix; tree: a bare ROCm tree"`
	Listed  bool     `json:"listed" jsonschema:"there was a files.jsonl; otherwise all of the tree was read"`
	Omitted []string `json:"omitted,omitempty" jsonschema:"rules by which parts were left out on purpose"`
	Files   int      `json:"files" jsonschema:"regular files, each name"`
	Links   int      `json:"links" jsonschema:"symbolic links"`
	Bytes   int64    `json:"bytes" jsonschema:"content of regular files, hard links counted once"`
}

// The kinds of risk, the gravest first.
const (
	RiskDowngrade = "downgrade"  // B is the older version
	RiskKernels   = "kernels"    // GPU code for a target is gone
	RiskLayout    = "layout"     // a name at the top of the tree is gone: amdgcn, llvm
	RiskSoname    = "soname"     // a library is gone, or has another SONAME
	RiskVersions  = "versions"   // a library lost symbol versions
	RiskSymbols   = "symbols"    // a public library lost symbols
	RiskUnread    = "unreadable" // an ELF file that made sense does not any more
	RiskPrograms  = "programs"   // commands are gone
	RiskFloor     = "host-floor" // newer versions of the host's libraries are needed
	RiskNeeded    = "host-library"
	RiskConfig    = "config" // the compiler's configuration differs
)

// Risk is one thing that may break.
type Risk struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject" jsonschema:"a path, SONAME, target or version"`
	Detail  string `json:"detail"`
}

// VersionChange is the version of one part before and after.
type VersionChange struct {
	Name   string `json:"name"`
	From   string `json:"from"`             // "" if A does not have it
	To     string `json:"to"`               // "" if B does not have it
	Source string `json:"source,omitempty"` // path of the file that says so
}

// Sources are the commits that two trees were built from.
type Sources struct {
	Rock       Commit      `json:"the_rock"`
	Submodules []Submodule `json:"submodules" jsonschema:"those that differ, by name"`
	Same       int         `json:"same" jsonschema:"submodules at one commit in both"`
	Flags      []Flag      `json:"flags,omitempty" jsonschema:"build flags that differ"`
}

// Commit is a repository at two commits.
type Commit struct {
	From string `json:"from"` // "" if it is not known
	To   string `json:"to"`
	Link string `json:"link,omitempty" jsonschema:"a page that shows what lies between; absent where none is known to be safe"`
}

// Submodule is one submodule of TheRock.
type Submodule struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"`
	URL  string `json:"url,omitempty" jsonschema:"as the manifest of B says, else of A; not to be trusted"`
	Why  string `json:"why" jsonschema:"added, removed, moved (another repository), changed or patches"`
	Commit
	PatchesFrom    int      `json:"patches_from"`
	PatchesTo      int      `json:"patches_to"`
	PatchesAdded   []string `json:"patches_added,omitempty"`
	PatchesRemoved []string `json:"patches_removed,omitempty"`
}

// Flag is a build flag, its values as JSON; "" if there is none.
type Flag struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Tally counts names and the bytes of their content.
type Tally struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (t *Tally) add(bytes int64) { t.Files++; t.Bytes += bytes }

// Files counts the files and symbolic links of the ROCm trees.
type Files struct {
	Same       Tally `json:"same"`
	Added      Tally `json:"added"`
	Removed    Tally `json:"removed"`
	Changed    Tally `json:"changed" jsonschema:"published content differs; bytes as in B"`
	Renamed    Tally `json:"renamed" jsonschema:"bytes as in B"`
	Edits      Tally `json:"edits" jsonschema:"published content is equal, and was edited in different ways"`
	Kind       int   `json:"kind" jsonschema:"a file became a link or a directory, or the like"`
	Mode       int   `json:"mode" jsonschema:"permission bits differ; write permission counts only between two prefixes, and not that of the owner"`
	Retargeted int   `json:"retargeted" jsonschema:"symbolic links that lead to another name"`
	Unknown    int   `json:"unknown" jsonschema:"files that could not be compared"`
	Delta      int64 `json:"delta" jsonschema:"bytes of B minus bytes of A"`
}

// Group is what differs below one directory.
type Group struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Changed int    `json:"changed"`
	Renamed int    `json:"renamed"`
	From    int64  `json:"from" jsonschema:"bytes in A"`
	To      int64  `json:"to" jsonschema:"bytes in B"`
}

// Rename is a file, or all files of a directory, under another name.
type Rename struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Files int    `json:"files" jsonschema:"1 for a file"`
	Dir   bool   `json:"dir,omitempty"`
	Same  int    `json:"same" jsonschema:"how many of them have equal content"`
}

// Entry is a file that only one tree has.
type Entry struct {
	Path  string        `json:"path"`
	Kind  manifest.Kind `json:"kind"`
	Bytes int64         `json:"bytes"`
}

// Change is a file that differs.
type Change struct {
	Path  string `json:"path"` // in B
	Was   string `json:"was,omitempty" jsonschema:"its path in A, if that differs"`
	Why   string `json:"why" jsonschema:"content, kind, mode or link"`
	From  int64  `json:"from" jsonschema:"bytes in A"`
	To    int64  `json:"to" jsonschema:"bytes in B"`
	Known string `json:"detail,omitempty" jsonschema:"what it was and is, where that is not its content"`
}

// Library is a library that lost something.
type Library struct {
	Path     string   `json:"path"` // in A
	To       string   `json:"to,omitempty" jsonschema:"its path in B, if that differs; absent with gone"`
	Gone     bool     `json:"gone,omitempty"`
	Public   bool     `json:"public" jsonschema:"it stands in lib/ itself, where programs link to it"`
	Soname   string   `json:"soname,omitempty"`
	NameGone bool     `json:"name_gone,omitempty" jsonschema:"the library is there, but not under its SONAME in its directory"`
	Now      string   `json:"soname_now,omitempty" jsonschema:"SONAME in B, if that differs"`
	Versions []string `json:"versions_lost,omitempty"`
	Symbols  []Symbol `json:"symbols_lost,omitempty" jsonschema:"the first of them"`
	Lost     int      `json:"lost" jsonschema:"symbols lost that are not weak"`
	Weak     int      `json:"lost_weak" jsonschema:"weak symbols lost: templates and inline functions of C++, mostly"`
	Exports  int      `json:"exports" jsonschema:"symbols in A"`
}

// Symbol is one exported symbol.
type Symbol struct {
	Name    string `json:"name"` // as in the file
	Version string `json:"version,omitempty"`
	Weak    bool   `json:"weak,omitempty"`
	Pretty  string `json:"demangled,omitempty"`
}

// Host is what B asks of the host and A does not.
type Host struct {
	Floors    []Floor     `json:"floors" jsonschema:"versions that rose"`
	Versions  []NewNeed   `json:"versions" jsonschema:"symbol versions that no file of A needs"`
	Libraries []NewNeeded `json:"libraries" jsonschema:"libraries that are not in B, and that no file of A needs"`
}

// Floor is the newest version of a series that is needed: GLIBC, GLIBCXX.
type Floor struct {
	Series string `json:"series"`
	From   string `json:"from"` // "" if A needs none
	To     string `json:"to"`
	Path   string `json:"path" jsonschema:"the first file that needs it"`
	Files  int    `json:"files" jsonschema:"how many of the files that differ need it"`
}

// NewNeed is a symbol version of a library of the host.
type NewNeed struct {
	Library string `json:"library"`
	Version string `json:"version"`
	Weak    bool   `json:"weak,omitempty"`
	Path    string `json:"path" jsonschema:"the first file that needs it"`
	Files   int    `json:"files"`
}

// NewNeeded is a library of the host.
type NewNeeded struct {
	Library string `json:"library"`
	Path    string `json:"path" jsonschema:"the first file that needs it"`
	Files   int    `json:"files"`
}

// TextChange is a text file before and after.
type TextChange struct {
	Path string   `json:"path"`
	Why  string   `json:"why" jsonschema:"added, removed, changed, or edited otherwise after unpacking: what was published is equal"`
	Diff []string `json:"diff" jsonschema:"lines of a unified diff"`
	Cut  int      `json:"cut,omitempty" jsonschema:"lines left out"`
}

// Scripts counts what is different in files that start with #!.
type Scripts struct {
	Changed      int           `json:"changed" jsonschema:"scripts whose content differs"`
	Interpreters []Interpreter `json:"interpreters" jsonschema:"those whose first line differs"`
}

// Interpreter is one change of a first line, and how many scripts have it.
type Interpreter struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Files int    `json:"files"`
	Path  string `json:"path" jsonschema:"the first of them"`
}

// Wrapping counts the files beside the ROCm tree of a prefix: wrappers, hooks,
// environment.
type Wrapping struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
}

// Kernels is GPU code of one library for one target.
type Kernels struct {
	Library string `json:"library"`
	Target  string `json:"target"`
	A       Tally  `json:"a"`
	B       Tally  `json:"b"`
}

// Lost tells whether the target has nothing any more.
func (k Kernels) Lost() bool { return k.A.Files > 0 && k.B.Files == 0 }
