package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"golang.org/x/sync/errgroup"
)

// runNoopWorker is the process of a worker that does nothing but note when it
// was called. After COUNT calls it writes the times into the file RESULT.
func runNoopWorker() error {
	total, err := strconv.Atoi(os.Getenv("COUNT"))
	if err != nil {
		return err
	}
	rdb, err := openRedis(os.Getenv("REDIS_URL"), naiveRedis)
	if err != nil {
		return err
	}
	defer rdb.Close()
	var (
		mu    sync.Mutex
		times = make([]time.Time, 0, total)
		done  = make(chan struct{})
	)
	server := asynq.NewServerFromRedisClient(rdb, asynqConfig())
	err = server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		mu.Lock()
		defer mu.Unlock()
		if times = append(times, time.Now()); len(times) == total {
			close(done)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	go func() {
		<-done
		mu.Lock()
		defer mu.Unlock()
		_ = writeTimes(os.Getenv("RESULT"), times)
	}()
	untilStopped()
	server.Shutdown()
	return nil
}

// writeTimes writes a file that appears when it is complete.
func writeTimes(path string, times []time.Time) error {
	var text strings.Builder
	for _, t := range times {
		fmt.Fprintln(&text, t.UnixNano())
	}
	if err := os.WriteFile(path+".part", []byte(text.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func readTimes(path string) ([]time.Time, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var times []time.Time
	for line := range strings.Lines(string(text)) {
		ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return nil, err
		}
		times = append(times, time.Unix(0, ns))
	}
	return times, nil
}

// drainNoop puts n tasks into an empty queue and returns when a worker that
// does nothing was called for each. The worker starts when all are there.
func (l *lab) drainNoop(ctx context.Context, n int, at time.Time) (times []time.Time, cpu usage, err error) {
	redisURL, err := l.servers.emptyRedis(ctx, noopIndex)
	if err != nil {
		return nil, nil, err
	}
	if err := enqueueNoop(ctx, redisURL, n, at); err != nil {
		return nil, nil, err
	}
	before := l.cpu()
	result := filepath.Join(l.dir, fmt.Sprintf("noop-%d", l.started))
	worker, err := l.start("no-op worker", []string{"REDIS_URL=" + redisURL, "COUNT=" + strconv.Itoa(n), "RESULT=" + result}, l.self, "role-noop-worker")
	if err != nil {
		return nil, nil, err
	}
	err = eventually(ctx, func() (bool, error) {
		_, err := os.Stat(result)
		return err == nil, nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("no-op worker: %w", err)
	}
	cpu = l.cpu().since(before)
	if err := l.stop(worker); err != nil {
		return nil, nil, err
	}
	times, err = readTimes(result)
	return times, cpu, err
}

// enqueueNoop makes tasks that are as large as our wake-ups.
func enqueueNoop(ctx context.Context, redisURL string, n int, at time.Time) error {
	rdb, err := openRedis(redisURL, 16)
	if err != nil {
		return err
	}
	defer rdb.Close()
	client := asynq.NewClientFromRedisClient(rdb)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for range n {
		g.Go(func() error {
			id := uuid.New()
			payload := fmt.Appendf(nil, `{"Push":"%s","Gen":1,"RecipientKey":-1234567890123456789,"At":"2026-12-01T09:00:00Z"}`, id)
			_, err := client.EnqueueContext(ctx, asynq.NewTask("noop", payload), asynq.TaskID(id.String()+":1"), asynq.ProcessAt(at))
			return err
		})
	}
	return g.Wait()
}

// eventually waits until done says so, for two minutes at most.
func eventually(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
