package serve_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve"
)

// A daemon with one job, which somebody wants now.
func ExampleDaemon() {
	done := make(chan bool)
	d, err := serve.New([]serve.Job{{
		Name: "update", Kind: serve.Update, Spec: "CRON_TZ=UTC 30 6 * * *", Window: 6 * time.Hour, Retry: 10 * time.Minute,
		Run: func(_ context.Context, t serve.Turn) serve.Result {
			fmt.Println("running:", t.Why)
			return serve.Result{After: func(_ context.Context, final bool) { close(done) }}
		},
	}}, serve.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx) }()
	if err := d.RunNow(ctx, "update"); err != nil {
		fmt.Println(err)
	}
	<-done
	cancel()
	fmt.Println(<-ended)
	// Output:
	// running: asked
	// <nil>
}

// Midnight does not exist in Beirut when its clocks are set forward: the day has its
// run all the same.
func ExampleParseSchedule() {
	beirut, err := time.LoadLocation("Asia/Beirut")
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, beirut)
	s, err := serve.ParseSchedule("CRON_TZ=Asia/Beirut 0 0 * * *", at)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Next(at))
	// Output: 2026-03-29 01:00:00 +0300 EEST
}
