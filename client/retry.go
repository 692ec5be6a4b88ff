package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"
)

// again reports whether a failed call is retried, and after which pause: half of it and a random part of the other half, but
// at least the Retry-After of the API. A rate-limited call has changed nothing and can always be retried; others only if
// a second call changes nothing more. A refusal is an answer, and is not retried.
func (c *Client) again(what call, err error, pause time.Duration) (wait time.Duration, again bool) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return 0, false
	}
	wait = pause/2 + rand.N(pause)
	var limited *RateLimited
	var unavailable *Unavailable
	var problem *Problem
	switch {
	case errors.As(err, &limited):
		return max(wait, limited.RetryAfter), limited.RetryAfter <= c.config.LongestPause
	case !what.repeat:
		return 0, false
	case errors.As(err, &unavailable):
		return max(wait, unavailable.RetryAfter), unavailable.RetryAfter <= c.config.LongestPause
	case errors.As(err, &problem): // a proxy's, if there was no answer behind it
		return wait, problem.Status == http.StatusBadGateway || problem.Status == http.StatusGatewayTimeout
	}
	return wait, true // the connection failed
}

// sleep waits, or fails with the context.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
