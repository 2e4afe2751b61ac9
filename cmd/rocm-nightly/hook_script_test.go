package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// recordHook is the script command hook: a receiver of webhooks. It appends one line
// for each, the id, whether it is signed, and the body, while the file is there.
func recordHook(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hook FILE")
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(path, nil, 0o644))
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		f, ferr := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil || ferr != nil {
			http.Error(w, "away", http.StatusForbidden) // which is not tried again at once
			return
		}
		fmt.Fprintf(f, "%s signed=%t %s\n", r.Header.Get("webhook-id"), r.Header.Get("webhook-signature") != "", body)
		if f.Close() != nil {
			http.Error(w, "no room", http.StatusInsufficientStorage)
		}
	}))
	ts.Defer(srv.Close)
	ts.Setenv("HOOK", srv.URL)
}
