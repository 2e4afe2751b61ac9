//go:build never

package keepdeps

import (
	_ "github.com/PuerkitoBio/goquery"
	_ "github.com/aquasecurity/go-pep440-version"
	_ "github.com/cavaliergopher/grab/v3"
	_ "github.com/cenkalti/backoff/v5"
	_ "github.com/coreos/go-systemd/v22/daemon"
	_ "github.com/goccy/go-yaml"
	_ "github.com/gofrs/flock"
	_ "github.com/google/jsonschema-go/jsonschema"
	_ "github.com/google/renameio/v2"
	_ "github.com/klauspost/compress/gzip"
	_ "github.com/lmittmann/tint"
	_ "github.com/opencontainers/go-digest"
	_ "github.com/robfig/cron/v3"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/spf13/cobra"
	_ "github.com/vbauerster/mpb/v8"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "pgregory.net/rapid"
)
