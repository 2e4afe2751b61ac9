package unpack

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	good := archive(t, entry{name: "./d"}, entry{name: "./bin/x", body: strings.Repeat("x", 100_000)}, entry{name: "./y", body: "y"})
	c, err := Check(context.Background(), bytes.NewReader(good), Options{})
	if err != nil || c.Entries != 3 || c.Bytes < 100_000 {
		t.Fatalf("%+v, %v", c, err)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-6] ^= 1
	for what, raw := range map[string][]byte{
		"nothing":       nil,
		"a cut trailer": good[:len(good)-1],
		"half of it":    good[:len(good)/2],
		"a wrong CRC":   flipped,
		"more after it": append(bytes.Clone(good), "more"...),
		"a web page":    []byte("<!DOCTYPE html><title>Sign in</title>"),
	} {
		if c, err := Check(context.Background(), bytes.NewReader(raw), Options{}); err == nil {
			t.Errorf("%s passed: %+v", what, c)
		}
	}
	for what, l := range map[string]Limits{"entries": {MaxEntries: 2}, "bytes": {MaxBytes: 1000}} {
		if _, err := Check(context.Background(), bytes.NewReader(good), Options{Limits: l}); !errors.Is(err, ErrRefused) {
			t.Errorf("more %s than allowed: %v", what, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, bytes.NewReader(good), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
