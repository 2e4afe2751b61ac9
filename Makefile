# Two targets do everything: `make demo` shows the main job, `make test` runs
# all tests and installs the tools that they need where it can.

GO ?= go
BIN = bin/rocm-nightly

.PHONY: all build demo test test-heavy lint fuzz bench corpus clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) ./cmd/rocm-nightly

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
	rm -rf bin
