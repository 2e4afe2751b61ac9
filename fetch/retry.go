package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// maxPause is the longest pause between two tries that the server did not ask for.
const maxPause = time.Minute

// furtherError is a failure of a try that got further than those before it.
type furtherError struct{ error }

func (e *furtherError) Unwrap() error { return e.error }

// finalError is a failure that is not to be tried again.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// retry calls op until it succeeds, fails for good, or has been tried again
// as often as retries allows since it last got further. Pauses grow
// exponentially, with jitter, and are those that a server asks for in
// Retry-After.
func retry(ctx context.Context, retries int, pause time.Duration, note func(error, time.Duration), op func() error) error {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval, pauses.Multiplier = pause, maxPause, 2
	var last error
	tries := 0
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		last = op()
		if further, ok := errors.AsType[*furtherError](last); ok {
			last, tries = further.error, 0
			pauses.Reset()
		}
		if final, ok := errors.AsType[*finalError](last); ok {
			last = final.error
			return struct{}{}, backoff.Permanent(last)
		}
		if tries++; tries > retries && last != nil {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, classify(last)
	},
		backoff.WithBackOff(pauses),
		backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(_ error, wait time.Duration) { note(last, wait) }),
	)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return last // not what backoff made of it
}

// classify marks an error for backoff: permanent, to be retried after a given
// time, or to be retried.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		switch {
		case !status.transient(), status.RetryAfter > maxRetryAfter:
			return backoff.Permanent(err)
		case status.RetryAfter > 0:
			return fmt.Errorf("%w: %w", err, &backoff.RetryAfterError{Duration: status.RetryAfter})
		}
		return err
	}
	if permanent(err) {
		return backoff.Permanent(err)
	}
	return err
}

// permanent reports whether trying again cannot help. What is left is the
// network: resets, time-outs, bodies that end early.
func permanent(err error) bool {
	if errors.Is(err, errAgain) {
		return false
	}
	return isA[*LayoutError](err) || isA[*ChangedError](err) || isA[*RangeError](err) ||
		isA[*EncodingError](err) || isA[*NotArchiveError](err) || isA[*SizeError](err) ||
		isA[*InsecureError](err) || isA[*SlowError](err) || isA[*SettingError](err) || isA[*certificateError](err) || isA[*tls.CertificateVerificationError](err) ||
		isA[*fs.PathError](err) || isA[*os.LinkError](err) || errors.Is(err, context.Canceled)
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
