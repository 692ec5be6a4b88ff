package schedule

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// every runs pass again and again until ctx ends. It is the one loop of all
// background work: a pass that found as much as it can handle at once is
// followed by the next without a pause, and one that failed is logged.
func every(ctx context.Context, interval time.Duration, log *slog.Logger, name string, pass func(context.Context) (full bool, err error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		full, err := pass(ctx)
		if err != nil && ctx.Err() == nil {
			log.ErrorContext(ctx, name+" failed; it is tried again", "error", err)
		}
		if full && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// parallel calls do for 0 … n−1 at the same time and waits.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}
