package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// Reporter is the part of [testing.TB] that reports failures.
type Reporter interface {
	Errorf(format string, args ...any)
	Failed() bool
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Helper()
}

// Scope is the part of [testing.TB] for the resources of a test: they live until its end.
type Scope interface {
	Cleanup(func())
	Context() context.Context
	Logf(format string, args ...any)
	TempDir() string
}

// T is the part of [testing.TB] that the harness uses. A program that is not a test gets one from [Run].
type T interface {
	Reporter
	Scope
}

// Run calls f as the testing package calls a test, and returns its errors: Fatal
// ends f, and what f registered with Cleanup follows, the last first. It lets
// programs such as bench and chaos use the harness.
func Run(ctx context.Context, f func(t T)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{ctx: ctx}
	r.call(func() { f(r) })
	cancel()
	for last := len(r.cleanups) - 1; last >= 0; last = len(r.cleanups) - 1 {
		next := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		r.call(next)
	}
	return errors.Join(r.errs...)
}

// run is the T of one Run.
type run struct {
	ctx      context.Context
	mu       sync.Mutex
	errs     []error
	cleanups []func()
}

// call calls f in a goroutine of its own, which Fatal can end.
func (r *run) call(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *run) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *run) Context() context.Context { return r.ctx }

func (r *run) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *run) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs != nil
}

func (r *run) Fatal(args ...any) {
	r.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (r *run) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *run) Helper() {}

func (r *run) Logf(string, ...any) {}

func (r *run) TempDir() string {
	dir, err := os.MkdirTemp("", "sendquota-")
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Check ends the test on an error.
func Check(t Reporter, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Finally calls f when the test ends, and reports its error.
func Finally(t T, f func() error) {
	t.Cleanup(func() {
		if err := f(); err != nil {
			t.Errorf("%v", err)
		}
	})
}

// Until waits until holds returns true, for two minutes at most. It asks again
// after each interval.
func Until(t T, interval time.Duration, fact string, holds func() bool) {
	t.Helper()
	UntilWhole(t, interval, func() string {
		if holds() {
			return ""
		}
		return fact
	})
}

// UntilWhole waits until missing returns "". Otherwise missing returns what is still missing.
func UntilWhole(t T, interval time.Duration, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; Sleep(t, interval) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// Sleep waits. It ends the test when its context ends.
func Sleep(t T, d time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	case <-time.After(d):
	}
}
