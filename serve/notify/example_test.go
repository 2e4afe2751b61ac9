package notify_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
	"github.com/rocm-nightly/rocm-nightly/serve/notify"
	"github.com/rocm-nightly/rocm-nightly/update"
)

func ExampleNotifier_Tell() {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("a webhook", r.Header.Get("webhook-signature") != "")
	}))
	defer srv.Close()
	n, err := notify.New(notify.Options{Sinks: []notify.Sink{
		{Name: "dashboard", Kind: notify.Webhook, URL: srv.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rep := &update.Report{Installs: []*update.Outcome{{Install: "nightly-gfx1151", From: "10.2.0a20260929", To: "10.2.0a20260930", Changed: true}}}
	now := time.Date(2026, 10, 1, 6, 30, 0, 0, time.UTC)
	for range 3 { // it is told once
		fmt.Println(n.Tell(context.Background(), notify.Events(rep, "build1", now, true)))
	}
	// Output:
	// a webhook true
	// <nil>
	// <nil>
	// <nil>
}

func ExampleEvents() {
	rep := &update.Report{Installs: []*update.Outcome{{
		Install: "nightly-gfx1151", From: "10.2.0a20260929", Exit: update.ExitFailed, Error: "download: no space left on device",
	}}}
	for _, e := range notify.Events(rep, "build1", time.Now(), true) {
		if e.Kind != notify.Recovered {
			fmt.Printf("%s\n%s\n", e.Title, e.Text)
		}
	}
	// Output:
	// nightly-gfx1151: the update failed (build1)
	// Active: 10.2.0a20260929.
	// Why: download: no space left on device
	// To try again now: rocm-nightly update --arch gfx1151; to look: rocm-nightly doctor
}

// The values are those of the specification's own example.
func ExampleKey_Verify() {
	key, err := notify.ParseKey(secret.New("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"test": 2432232314}`)
	at := time.Unix(1614265330, 0)
	signature := key.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, body)
	fmt.Println(signature)
	fmt.Println(key.Verify("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", signature, body, at.Add(time.Minute), 5*time.Minute))
	fmt.Println(key.Verify("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", signature, append(body, ' '), at, 5*time.Minute))
	// Output:
	// v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
	// <nil>
	// verify a webhook: none of its signatures is of this key
}
