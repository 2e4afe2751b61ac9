# Two targets do everything: `make demo` shows the main job, `make test` runs
# all tests and installs the tools that they need where it can.

GO ?= go
BIN = bin/rocm-nightly

.PHONY: all build demo test test-heavy lint fuzz bench corpus release packages install uninstall clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/rocm-nightly

# Everything that is published, in dist; docs/release.md.
release:
	./scripts/release.sh

# deb, rpm and Arch package for this machine alone.
packages:
	./scripts/release.sh --packages --arch $$($(GO) env GOHOSTARCH)

# DESTDIR= and PREFIX=/usr/local say where to; nothing is enabled or started.
install: build
	rm -rf bin/layout
	./scripts/layout.sh $(BIN) $(BIN) bin/layout
	bin/layout/install.sh

uninstall: build
	rm -rf bin/layout
	./scripts/layout.sh $(BIN) $(BIN) bin/layout
	bin/layout/install.sh --uninstall

demo: build
	./$(BIN) demo

test:
	./scripts/test.sh

test-heavy:
	./scripts/test-heavy.sh

lint:
	./scripts/lint.sh

fuzz:
	./scripts/fuzz.sh

bench:
	./scripts/bench.sh

corpus:
	./scripts/corpus.sh

clean:
	rm -rf bin dist
