package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// linkStatus is a link that leads, or should lead, into the store.
type linkStatus struct {
	Path    string `json:"path"`
	State   string `json:"state"` // ours, absent, foreign or unknown
	What    string `json:"what"`
	Slot    string `json:"slot,omitempty"`       // that it leads to, or should
	Kind    string `json:"kind"`                 // link, or of the host: profile, fish, ldconfig, opencl, modulefiles
	By      string `json:"by,omitempty"`         // config, link (the verb) or host; "": the config asks for it, and it was never made
	Instead string `json:"instead_of,omitempty"` // the path that was asked for, and is taken
	Before  string `json:"before,omitempty"`     // what the link that was taken over points to
	Note    string `json:"note,omitempty"`       // what is wrong with it
}

// linkStatuses lists the links of the config and those on record.
func (a *app) linkStatuses(cfg *config.Config, st *store.Store) []linkStatus {
	out := []linkStatus{}
	known, err := st.Links()
	if err != nil {
		out = append(out, linkStatus{Path: filepath.Join(st.Root(), "links.json"), State: "unknown", What: err.Error(), Kind: "link"})
	}
	host := hostLinks(cfg, a)
	for _, l := range known {
		s := statusOfLink(st, l.Path)
		s.Kind, s.By, s.Slot, s.Instead, s.Before = update.HostKind(l), l.By, l.Slot, l.Instead, l.Before
		s.Note = linkNote(st, l, s)
		if no := unasked(cfg, l, host); no != "" && len(a.read) > 0 && (s.Note == "" || s.State == string(store.LinkAbsent)) {
			s.Note = no
		}
		out = append(out, s)
	}
	for _, in := range cfg.Installs {
		if in.Link == "" || slices.ContainsFunc(out, func(s linkStatus) bool { return s.Path == filepath.Clean(in.Link) }) {
			continue
		}
		out = append(out, statusOfLink(st, in.Link))
	}
	for _, path := range host {
		if !slices.ContainsFunc(out, func(s linkStatus) bool { return s.Path == path }) {
			s := statusOfLink(st, path)
			s.Kind = "host"
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(x, y linkStatus) int { return strings.Compare(x.Path, y.Path) })
	return out
}

func statusOfLink(st *store.Store, path string) linkStatus {
	l, err := st.LinkStatus(path)
	if err != nil {
		return linkStatus{Path: filepath.Clean(path), State: "unknown", What: err.Error(), Kind: "link"}
	}
	s := linkStatus{Path: l.Path, State: string(l.State), What: l.What, Slot: l.Slot, Kind: "link"}
	if l.Dangling {
		s.Note = "it leads to nothing"
	}
	return s
}

// linkNote says what is not as it should be with a link on record.
func linkNote(st *store.Store, l store.Link, s linkStatus) string {
	switch {
	case l.Pending != "":
		return "it was interrupted; the next run finishes it"
	case s.State == string(store.LinkForeign):
		return "somebody has changed it since; rocm-nightly unlink " + l.Path + " forgets it"
	case s.State == string(store.LinkAbsent):
		return "somebody has removed it since; the next update makes it again"
	case s.Note != "":
		return s.Note
	case l.Instead != "":
		if ls, err := st.LinkStatus(l.Instead); err == nil && ls.State == store.LinkForeign {
			return "in the place of " + l.Instead + ", where there is " + ls.What
		}
		return "it was made in the place of " + l.Instead
	case l.Before != "":
		return "taken over from " + l.Before
	}
	return ""
}

// unasked says that the config does not ask for a link on record any more.
func unasked(cfg *config.Config, l store.Link, host []string) string {
	switch {
	case l.By == store.LinkByConfig && l.Instead == "" && askedLink(cfg, l.Path) == nil:
		return "the config does not ask for it any more; to remove it: rocm-nightly unlink " + l.Path
	case l.By == store.LinkByHost && !slices.Contains(host, l.Path):
		return "the config does not ask for it any more; the next update removes it"
	}
	return ""
}

func printLinks(w io.Writer, links []linkStatus) {
	for _, l := range links {
		fmt.Fprintf(w, "%s\t%s\t%s\n", plain.Text(l.Path), l.State, plain.Text(l.What))
		if l.Note != "" {
			fmt.Fprintf(w, "  %s\n", plain.Text(l.Note))
		}
	}
}

// printLinked tells what a run did with links, and what it left alone.
func (a *app) printLinked(rep *update.Report) {
	for _, out := range rep.Installs {
		if out.Link != "" {
			fmt.Fprintf(a.stdout, "  %s: %s\n", out.Install, printable(out.Link))
		}
	}
	for _, l := range rep.Links {
		switch {
		case l.Error != "":
			fmt.Fprintf(a.stdout, "%s: %s\n", l.Kind, printable(l.Error))
		case l.Changed:
			fmt.Fprintf(a.stdout, "%s: %s %s\n", l.Kind, plain.Text(l.Path), l.Message)
		}
	}
}
