package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// The shapes of SPDX 2.3's JSON that are used here: spdx.github.io/spdx-spec/v2.3.

type spdxDocument struct {
	SPDXVersion       string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	ID                string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string         `json:"SPDXID"`
	Name             string         `json:"name"`
	Version          string         `json:"versionInfo,omitempty"`
	DownloadLocation string         `json:"downloadLocation"`
	FilesAnalyzed    bool           `json:"filesAnalyzed"`
	SourceInfo       string         `json:"sourceInfo,omitempty"`
	LicenseConcluded string         `json:"licenseConcluded"`
	LicenseDeclared  string         `json:"licenseDeclared"`
	Copyright        string         `json:"copyrightText"`
	Purpose          string         `json:"primaryPackagePurpose,omitempty"`
	Checksums        []spdxChecksum `json:"checksums,omitempty"`
	Refs             []spdxRef      `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// sbom writes what a binary is made of, as its linker recorded it: the program, the
// release of Go, and each module. The document is named by the binary's digest, and
// is of the commit's time, so that it has nothing of its own making in it.
func sbom(binary string, o options) error {
	info, deps, err := linked(binary)
	if err != nil {
		return err
	}
	sum, err := sha256Of(binary)
	if err != nil {
		return err
	}
	doc := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + " " + o.version,
		DocumentNamespace: homepage + "/spdx/" + sum,
		CreationInfo:      spdxCreation{Created: o.when.Format(time.RFC3339), Creators: []string{"Tool: rocm-nightly-packaging", "Organization: The rocm-nightly authors"}},
	}
	program := spdxPackage{
		ID: "SPDXRef-program", Name: name, Version: o.version, DownloadLocation: noAssertion, LicenseConcluded: "MIT", LicenseDeclared: "MIT",
		Copyright: "2026 The rocm-nightly authors", Purpose: "APPLICATION", Checksums: []spdxChecksum{{"SHA256", sum}},
		Refs: []spdxRef{purl(info.Main.Path, o.version)},
	}
	if o.commit != "" {
		program.SourceInfo = "built from commit " + o.commit
	}
	std := spdxPackage{
		ID: "SPDXRef-go", Name: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go"), DownloadLocation: "https://go.dev/dl/",
		LicenseConcluded: noAssertion, LicenseDeclared: "BSD-3-Clause", Copyright: noAssertion, Purpose: "LIBRARY", Refs: []spdxRef{purl("stdlib", info.GoVersion)},
	}
	doc.Packages = append(doc.Packages, program, std)
	doc.relate("SPDXRef-DOCUMENT", "DESCRIBES", program.ID)
	doc.relate(program.ID, "CONTAINS", std.ID)
	for i, d := range deps {
		p, err := modulePackage(fmt.Sprintf("SPDXRef-module-%d", i+1), d)
		if err != nil {
			return err
		}
		doc.Packages = append(doc.Packages, p)
		doc.relate(program.ID, "CONTAINS", p.ID)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(text, '\n'), 0o644)
}

func (d *spdxDocument) relate(from, how, to string) {
	d.Relationships = append(d.Relationships, spdxRelationship{from, how, to})
}

// modulePackage: a module's h1 is the SHA-256 of the list of its files
// (golang.org/x/mod/sumdb/dirhash), which the checksum database vouches for.
func modulePackage(id string, m *debug.Module) (spdxPackage, error) {
	p := spdxPackage{
		ID: id, Name: m.Path, Version: m.Version, DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion,
		Copyright: noAssertion, Purpose: "LIBRARY", Refs: []spdxRef{purl(m.Path, m.Version)},
	}
	sum, ok := strings.CutPrefix(m.Sum, "h1:")
	if !ok {
		return p, fmt.Errorf("%s has no checksum in the binary: it is not from a release of it", m.Path)
	}
	raw, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return p, fmt.Errorf("read the checksum of %s: %w", m.Path, err)
	}
	p.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(raw)}}
	return p, nil
}

// purl names a module as scanners do (package-url/purl-spec, type golang).
func purl(module, version string) spdxRef {
	return spdxRef{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ToLower(module) + "@" + strings.ReplaceAll(version, "+", "%2B")}
}
