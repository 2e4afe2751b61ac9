package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCmd writes the manual. It is for whoever makes a package, so that --help does
// not list it.
func (a *app) manCmd() *cobra.Command {
	var configText string
	c := &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the pages of the manual",
		Hidden: true,
		Long: `Write the pages of the manual into DIR, which is made: one of section 1 for each
verb, and, with --config-text, rocm-nightly-config(5). The date in them is that of
SOURCE_DATE_EPOCH, or of the commit that this binary was built from, so that two
builds of one commit write the same bytes.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "config-text"); err != nil {
				return err
			}
			return a.man(cmd.Root(), args[0], configText)
		},
	}
	c.Flags().StringVar(&configText, "config-text", "", "the config.yaml of the sources, a `file` whose comments are the text of rocm-nightly-config(5)")
	return c
}

func (a *app) man(root *cobra.Command, dir, configText string) error {
	date, err := a.manDate()
	if err != nil {
		return usage(err)
	}
	m := manual{date: date, version: version().Version, pages: map[string]string{}}
	root.InitDefaultHelpCmd()
	m.verbs(root)
	if configText != "" {
		text, err := os.ReadFile(configText)
		if err != nil {
			return fmt.Errorf("write the manual: %w", err)
		}
		m.config(string(text))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write the manual: %w", err)
	}
	for name, text := range m.pages {
		if err := renameio.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write the manual: %w", err)
		}
	}
	fmt.Fprintf(a.stderr, "%s: %d pages\n", dir, len(m.pages))
	return nil
}

// manDate is the day that the pages are of; the first of all days where none is
// known, never today: https://reproducible-builds.org/specs/source-date-epoch/
func (a *app) manDate() (time.Time, error) {
	if epoch := a.getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		n, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || n < 0 {
			return time.Time{}, fmt.Errorf("write the manual: SOURCE_DATE_EPOCH %q is not a number of seconds", epoch)
		}
		return time.Unix(n, 0), nil
	}
	if t, err := time.Parse(time.RFC3339, version().Date); err == nil {
		return t, nil
	}
	return time.Unix(0, 0), nil
}

// manual is all pages, by their file names.
type manual struct {
	date    time.Time
	version string
	pages   map[string]string
}

// verbs writes the page of c, and of all below it.
func (m *manual) verbs(c *cobra.Command) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	name := manName(c)
	m.pages[name+".1"] = m.verb(name, c)
	for _, sub := range c.Commands() {
		m.verbs(sub)
	}
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func (m *manual) verb(name string, c *cobra.Command) string {
	p := newManPage(name, 1, m.date, m.version)
	p.named(name, strings.TrimSuffix(c.Short, "."))
	p.section("SYNOPSIS")
	for i, form := range strings.Split(c.UseLine(), " | ") {
		if i > 0 {
			p.b.WriteString(".br\n")
			form = strings.TrimSpace(c.Parent().CommandPath() + " " + form)
		}
		p.b.WriteString(roffBold(form) + "\n")
	}
	p.section("DESCRIPTION")
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	p.text(long)
	m.below(p, c)
	m.options(p, c)
	if c.Example != "" {
		p.section("EXAMPLES")
		p.text(c.Example)
	}
	m.endings(p, c)
	return p.String()
}

// below lists the verbs of c, in their groups.
func (m *manual) below(p *manPage, c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	p.section("COMMANDS")
	list := func(group string) {
		for _, sub := range c.Commands() {
			if sub.GroupID == group && sub.IsAvailableCommand() && sub.Name() != "help" {
				p.item(roffBold(manName(sub))+"(1)", sub.Short)
			}
		}
	}
	list("")
	for _, g := range c.Groups() {
		p.part(strings.TrimSuffix(g.Title, ":"))
		list(g.ID)
	}
}

func (m *manual) options(p *manPage, c *cobra.Command) {
	c.InitDefaultHelpFlag()
	if c.DisableFlagParsing { // patchelf: its flags are patchelf's
		if c.Name() == "patchelf" {
			p.section("OPTIONS")
			for _, f := range patchelfFlagTable {
				p.item(roffBold(strings.ReplaceAll(f.names, " ", ", "))+" "+roffItalic(f.values), f.help)
			}
		}
		return
	}
	p.section("OPTIONS")
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		p.item(optionTag(f), optionText(f))
	})
	if c.HasParent() {
		p.begin()
		p.b.WriteString("Those that every command takes are in\n.BR rocm\\-nightly (1).\n")
	}
}

func optionTag(f *pflag.Flag) string {
	tag := roffBold("--" + f.Name)
	if f.Shorthand != "" {
		tag = roffBold("-"+f.Shorthand) + ", " + tag
	}
	if value, _ := pflag.UnquoteUsage(f); value != "" && f.NoOptDefVal != "" {
		tag += "[=" + roffItalic(value) + "]"
	} else if value != "" {
		tag += " " + roffItalic(value)
	}
	return tag
}

func optionText(f *pflag.Flag) string {
	_, text := pflag.UnquoteUsage(f)
	switch f.DefValue {
	case "", "false", "[]", "0", "0s":
		return text
	}
	return fmt.Sprintf("%s (default %s)", text, f.DefValue)
}

// endings are the sections that every page ends with.
func (m *manual) endings(p *manPage, c *cobra.Command) {
	if !c.HasParent() {
		p.section("FILES")
		p.item(roffItalic("/etc/rocm-nightly/config.yaml")+", "+roffItalic("config.d/*.yaml"), "The config of the machine.")
		p.item(roffItalic("$XDG_CONFIG_HOME/rocm-nightly/config.yaml"), "The config of a user who is not root; it is taken in place of the machine's.")
		p.item(roffItalic("/var/lib/rocm-nightly"), "What is installed for the machine.")
		p.item(roffItalic("$XDG_DATA_HOME/rocm-nightly"), "What is installed for a user.")
		p.section("ENVIRONMENT")
		p.item(roffBold("ROCM_NIGHTLY_CONFIG"), "A config file, read in place of all others.")
		p.item(roffBold("NO_COLOR"), "No colour in logs, if it is not empty.")
	}
	p.section("SEE ALSO")
	var also []string
	if c.HasParent() {
		also = append(also, `\fB`+roffText(manName(c.Parent()))+`\fR(1)`)
	}
	also = append(also, `\fBrocm\-nightly\-config\fR(5)`)
	p.b.WriteString(strings.Join(also, ",\n") + "\n")
}
