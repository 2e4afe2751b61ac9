package wrap

import (
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// treeLink is a link at the root of a ROCm tree.
type treeLink struct{ name, target string }

// wantedLinks are the links that a tree should have.
var wantedLinks = []treeLink{{"amdgcn", "lib/llvm/amdgcn"}, {"llvm", "lib/llvm"}}

// lacking lists the links that a ROCm root has and that older or trimmed trees
// lack: clang looks for device code in $ROCM_PATH/amdgcn, tools for the compiler
// in $ROCM_PATH/llvm. What stands there already stays, whatever it is.
func (t *tree) lacking() []treeLink {
	var links []treeLink
	for _, want := range wantedLinks {
		if _, taken := t.nodes[want.name]; !taken && t.isDir(want.target) {
			links = append(links, want)
		}
	}
	return links
}

// treeLinks adds the links that the tree lacks.
func (l *layout) treeLinks() {
	for _, link := range l.tree.lacking() {
		l.add(treeDir+"/"+link.name, item{kind: manifest.Symlink, link: link.target})
	}
}

// rootLinks makes the prefix look like a ROCm root: a link for each top-level
// entry, hidden ones included, and for each entry of a directory that holds
// something of ours too. It comes after everything else is laid out.
func (l *layout) rootLinks() {
	own := map[string]bool{"opt": true, manifest.Name: true, manifest.FilesName: true, manifest.OmittedName: true}
	for _, name := range l.names[""] {
		if !own[name] {
			l.merge(name)
		}
	}
	for _, name := range []string{"amdgcn", "llvm"} {
		if _, made := l.items[treeDir+"/"+name]; made {
			l.link(name, treeDir+"/"+name)
		}
	}
}

// merge links one entry of the tree at the same place of the prefix. Where we
// have a directory already the two are merged; where we have anything else, ours
// stays and the tree's is reached through opt/rocm.
func (l *layout) merge(p string) {
	have, taken := l.items[p]
	switch {
	case !taken:
		l.link(p, treeDir+"/"+p)
	case have.kind == manifest.Dir:
		real, ok := l.tree.resolveDir("", p)
		if !ok {
			return
		}
		for _, name := range l.names[real] {
			l.merge(p + "/" + name)
		}
	}
}

// licenseName matches the files that say under which terms a part may be used.
var licenseName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|copyright|notice)`)

// licenseDir is where packagers look for licenses.
const licenseDir = "share/licenses/rocm-nightly"

// licenses gathers links to the license files of the tree in one directory. One
// from share/doc/PART carries the name of its part.
func (l *layout) licenses() {
	l.dir("share")
	l.dir(licenseDir)
	for _, name := range l.names[""] {
		if licenseName.MatchString(name) {
			l.license(name, name)
		}
	}
	if real, ok := l.tree.resolveDir("", "share/licenses"); ok {
		for _, name := range l.names[real] {
			l.license(name, "share/licenses/"+name)
		}
	}
	doc, _ := l.tree.resolveDir("", "share/doc")
	if doc == "" {
		return
	}
	for _, part := range l.names[doc] {
		real, ok := l.tree.resolveDir(doc, part)
		if !ok {
			continue
		}
		for _, name := range l.names[real] {
			if licenseName.MatchString(name) {
				l.license(part+"-"+name, "share/doc/"+part+"/"+name)
			}
		}
	}
}

// license links one license. A name that is taken gets the place it came from
// in front.
func (l *layout) license(name, source string) {
	p := licenseDir + "/" + name
	if _, taken := l.items[p]; taken {
		p = licenseDir + "/" + strings.ReplaceAll(source, "/", "-")
	}
	if _, taken := l.items[p]; !taken {
		l.link(p, treeDir+"/"+source)
	}
}
