package groupcommit_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/sendquota/sendquota/internal/groupcommit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bundle is a group whose work waits for the test. It doubles numbers.
type bundle struct {
	groupcommit.Group[int, int]
	proceed chan struct{}

	mu     sync.Mutex
	begun  [][]int // the groups in the order of their start
	busy   int
	busier int // the most groups at work at the same time
}

func setup() *bundle {
	w := &bundle{proceed: make(chan struct{})}
	w.Run = func(_ context.Context, reqs []int) ([]int, error) {
		w.mu.Lock()
		w.begun = append(w.begun, slices.Clone(reqs))
		w.busy++
		w.busier = max(w.busier, w.busy)
		w.mu.Unlock()
		<-w.proceed
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy--
		return double(reqs)
	}
	return w
}

var errOdd = errors.New("odd")

func double(reqs []int) ([]int, error) {
	res := make([]int, len(reqs))
	for i, r := range reqs {
		if r < 0 {
			return nil, errOdd
		}
		res[i] = 2 * r
	}
	return res, nil
}

// call begins a call and waits until it is at work or in the queue.
func (w *bundle) call(t *testing.T, n int) {
	t.Helper()
	go func() {
		if got, err := w.Do(n); got != 2*n || err != nil {
			t.Errorf("Do(%d) = %d, %v", n, got, err)
		}
	}()
	synctest.Wait()
}

// finish lets groups go on until none is left.
func (w *bundle) finish() {
	close(w.proceed)
	synctest.Wait()
}

func (w *bundle) want(t *testing.T, groups ...[]int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if diff := cmp.Diff(groups, w.begun); diff != "" {
		t.Errorf("groups:\n%s", diff)
	}
}

func TestDo_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		w.call(t, 1)
		w.want(t, []int{1})
		w.finish()
		w.call(t, 2) // and so does the next, though the first one's worker is gone
		w.want(t, []int{1}, []int{2})
	})
}

// TestDo_LoneCall: a lone call runs without another goroutine: handing it over and back takes longer than a
// question to Redis.
func TestDo_LoneCall(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Microsecond} {
		var runs []string
		g := groupcommit.Group[int, int]{Pause: pause, Run: func(_ context.Context, reqs []int) ([]int, error) {
			runs = append(runs, goroutine())
			return double(reqs)
		}}
		if got, err := g.Do(1); got != 2 || err != nil || len(runs) != 1 || runs[0] != goroutine() {
			t.Errorf("Do(1) = %d, %v, run by %q, called by %s", got, err, runs, goroutine())
		}
	}
}

// goroutine names the one that runs.
func goroutine() string {
	stack := make([]byte, 64)
	name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), " [")
	return name
}

// TestDo_Panic: the caller has it, and the group goes on.
func TestDo_Panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		run := w.Run
		w.Run = func(ctx context.Context, reqs []int) ([]int, error) {
			if reqs[0] == 0 {
				<-w.proceed
				panic("boom")
			}
			return run(ctx, reqs)
		}
		go func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = w.Do(0)
		}()
		synctest.Wait()
		w.call(t, 1)
		w.finish()
		w.want(t, []int{1})
		w.call(t, 2)
		w.want(t, []int{1}, []int{2})
	})
}

func TestDo_Gathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		var sizes []int
		w.Observe = func(n int) { sizes = append(sizes, n) }
		for n := range 5 {
			w.call(t, n)
		}
		w.want(t, []int{0})
		w.proceed <- struct{}{}
		synctest.Wait()
		w.call(t, 5)
		w.want(t, []int{0}, []int{1, 2, 3, 4})
		w.finish()
		w.want(t, []int{0}, []int{1, 2, 3, 4}, []int{5})
		if !slices.Equal(sizes, []int{1, 4, 1}) {
			t.Errorf("observed groups of %v", sizes)
		}
	})
}

func TestGroup_Weights(t *testing.T) {
	for _, row := range []struct {
		name    string
		max     int
		waiting []int
		groups  [][]int
	}{
		{"up to the bound", 6, []int{3, 3, 3, 2, 1}, [][]int{{3, 3}, {3, 2, 1}}},
		{"a heavy one alone", 6, []int{1, 9, 1}, [][]int{{1}, {9}, {1}}},
		{"a heavy one first", 6, []int{9, 1, 1}, [][]int{{9}, {1, 1}}},
		{"in order, though a later one would fit", 6, []int{4, 4, 2}, [][]int{{4}, {4, 2}}},
		{"no bound", 0, []int{9, 9, 9}, [][]int{{9, 9, 9}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := setup()
				w.MaxWeight, w.Weight = row.max, func(n int) int { return n }
				w.call(t, 0)
				for _, n := range row.waiting {
					w.call(t, n)
				}
				w.finish()
				w.want(t, append([][]int{{0}}, row.groups...)...)
			})
		})
	}
}

// TestGroup_Pause: it makes the next group larger. It delays no answer, and no call that comes after it.
func TestGroup_Pause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		w.Pause = time.Second
		close(w.proceed) // the work itself takes no time
		began := time.Now()
		w.call(t, 0)
		w.want(t, []int{0})
		for n := 1; n <= 3; n++ {
			time.Sleep(300 * time.Millisecond)
			w.call(t, n)
		}
		w.want(t, []int{0})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		w.want(t, []int{0}, []int{1, 2, 3})
		if took := time.Since(began); took != time.Second {
			t.Errorf("the second group ran after %s", took)
		}
		time.Sleep(time.Second)
		w.call(t, 4)
		w.want(t, []int{0}, []int{1, 2, 3}, []int{4})
		time.Sleep(time.Second) // the last worker goes home
	})
}

// TestGroup_PauseFrom: a group of fewer requests is followed by no pause.
func TestGroup_PauseFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		w.Pause, w.PauseFrom = time.Second, 2
		began := time.Now()
		w.call(t, 0)
		w.call(t, 1) // alone in its group, behind one that is alone
		w.proceed <- struct{}{}
		synctest.Wait()
		w.want(t, []int{0}, []int{1})
		w.call(t, 2)
		w.call(t, 3)
		w.proceed <- struct{}{}
		synctest.Wait()
		w.want(t, []int{0}, []int{1}, []int{2, 3})
		if took := time.Since(began); took != 0 {
			t.Errorf("a lone call was followed by a pause of %s", took)
		}
		w.call(t, 4)
		close(w.proceed)
		synctest.Wait()
		w.want(t, []int{0}, []int{1}, []int{2, 3})
		time.Sleep(time.Second)
		synctest.Wait()
		w.want(t, []int{0}, []int{1}, []int{2, 3}, []int{4})
	})
}

func TestGroup_Parallel(t *testing.T) {
	for _, row := range []struct {
		parallel, most int
		groups         [][]int
	}{
		{0, 1, [][]int{{0}, {1, 2, 3, 4}}},
		{1, 1, [][]int{{0}, {1, 2, 3, 4}}},
		{2, 2, [][]int{{0}, {1}, {2, 3, 4}}},
		{9, 5, [][]int{{0}, {1}, {2}, {3}, {4}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := setup()
			w.Parallel = row.parallel
			for n := range 5 {
				w.call(t, n)
			}
			w.finish()
			w.want(t, row.groups...)
			if w.busier != row.most {
				t.Errorf("parallel %d: %d groups at once, want %d", row.parallel, w.busier, row.most)
			}
		})
	}
}

// TestGroup_Errors has one bad request, −1, among good ones.
func TestGroup_Errors(t *testing.T) {
	other := errors.New("another error")
	for _, row := range []struct {
		name   string
		alone  func(error) bool
		failed []int
		groups [][]int
	}{
		{"fails all", nil, []int{1, -1, 2}, [][]int{{0}, {1, -1, 2}}},
		{"is no reason to run them alone", func(err error) bool { return errors.Is(err, other) }, []int{1, -1, 2}, [][]int{{0}, {1, -1, 2}}},
		{"is found", func(err error) bool { return errors.Is(err, errOdd) }, []int{-1}, [][]int{{0}, {1, -1, 2}, {1}, {-1}, {2}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := setup()
				w.Alone = row.alone
				w.call(t, 0)
				results := map[int]error{}
				for _, n := range []int{1, -1, 2} {
					go func() {
						res, err := w.Do(n)
						w.mu.Lock()
						defer w.mu.Unlock()
						if results[n] = err; err == nil && res != 2*n {
							t.Errorf("Do(%d) = %d", n, res)
						}
					}()
					synctest.Wait()
				}
				w.finish()
				w.want(t, row.groups...)
				for n, err := range results {
					if failed := slices.Contains(row.failed, n); failed != errors.Is(err, errOdd) || failed != (err != nil) {
						t.Errorf("Do(%d): %v", n, err)
					}
				}
			})
		})
	}
}

// TestGroup_Crowd gives every one of many concurrent callers its own answer.
func TestGroup_Crowd(t *testing.T) {
	var groups, requests atomic.Int64
	g := groupcommit.Group[int, int]{
		Parallel: 3, MaxWeight: 50,
		Run: func(_ context.Context, reqs []int) ([]int, error) { return double(reqs) },
		Observe: func(n int) {
			groups.Add(1)
			requests.Add(int64(n))
			if n > 50 {
				t.Errorf("%d requests in one group", n)
			}
		},
	}
	var wg sync.WaitGroup
	const callers, calls = 64, 200
	for c := range callers {
		wg.Go(func() {
			for i := range calls {
				if got, err := g.Do(c*calls + i); got != 2*(c*calls+i) || err != nil {
					t.Errorf("Do(%d) = %d, %v", c*calls+i, got, err)
				}
			}
		})
	}
	wg.Wait()
	if requests.Load() != callers*calls || groups.Load() > requests.Load() {
		t.Errorf("%d requests in %d groups", requests.Load(), groups.Load())
	}
}

// TestGroup_Go: no caller waits for requests in the background. They are gathered, keep their order, and are refused
// when too many wait.
func TestGroup_Go(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := setup()
		w.Pause, w.MaxWeight, w.MaxWaiting = time.Second, 3, 5
		for req := range 7 {
			if room := w.Go(req); room != (req < 5) {
				t.Errorf("request %d: room %v", req, room)
			}
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.Flush(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flushed what has not begun: %v", err)
		}
		close(w.proceed)
		if err := w.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if !w.Go(7) {
			t.Error("no room, although nothing waits")
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([][]int{{0, 1, 2}, {3, 4}, {7}}, w.begun); diff != "" {
			t.Error(diff)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Errorf("nothing runs: %v", err)
		}
	})
}
