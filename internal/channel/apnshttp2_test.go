package channel

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv/http2server"
)

// sendAtOnce makes n concurrent attempts, and returns their results.
func sendAtOnce(t *testing.T, a *APNs, n int) []Result {
	t.Helper()
	results := make([]Result, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i] = a.Send(t.Context(), apnsPush(), 1) })
	}
	all.Wait()
	return results
}

func outcomes(results []Result) map[push.Outcome]int {
	n := map[push.Outcome]int{}
	for _, r := range results {
		n[r.Outcome]++
	}
	return n
}

func apnsTo(t *testing.T, s *http2server.Server, timeout time.Duration) *APNs {
	c := testConnection(timeout)
	c.Roots = s.Roots
	return newAPNsTo(t, APNsConfig{Connection: c, BaseURL: s.URL})
}

// Of sixty requests the server takes ten, and says so with a GOAWAY. It never processed the other fifty: the
// outcome of none of them is unknown.
func TestAPNs_GoAway(t *testing.T) {
	const all, taken = 60, 10
	for name, leave := range map[string]func(c *http2server.Conn, last uint32){
		"at once": func(c *http2server.Conn, last uint32) { c.GoAway(last, http2.ErrCodeNo) },
		"in two steps": func(c *http2server.Conn, last uint32) {
			c.GoAway(1<<31-1, http2.ErrCodeNo)
			c.GoAway(last, http2.ErrCodeNo)
		},
		"with an error": func(c *http2server.Conn, last uint32) { c.GoAway(last, http2.ErrCodeEnhanceYourCalm) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var waiting []http2server.Request
			server := http2server.Listen(t, func(r http2server.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Conn.Number > 0 || r.Stream == 1 {
					r.Answer(200)
					return
				}
				if waiting = append(waiting, r); len(waiting) < all {
					return
				}
				slices.SortFunc(waiting, func(a, b http2server.Request) int { return cmp.Compare(a.Stream, b.Stream) })
				leave(r.Conn, waiting[taken-1].Stream)
				for _, r := range waiting[:taken] {
					r.Answer(200)
				}
			})
			a := apnsTo(t, server, 20*time.Second)
			a.Send(t.Context(), apnsPush(), 1) // which makes the connection
			results := sendAtOnce(t, a, all)
			t.Logf("%v", outcomes(results))
			if got := outcomes(results); got[push.Delivered] != taken || got[push.Refused] != all-taken {
				t.Errorf("%v: %+v", got, results[0])
			}
			for _, r := range results {
				if r.Final || r.Down && r.Outcome == push.Refused {
					t.Errorf("%+v", r)
				}
			}
			again := 0
			for _, r := range results {
				if r.Outcome == push.Refused && a.Send(t.Context(), apnsPush(), 2).Outcome == push.Delivered {
					again++
				}
			}
			if conns := server.Conns(); again != all-taken || len(conns) != 2 || len(server.Requests()) != 1+all+again {
				t.Errorf("tried again, %d were delivered; %d requests on %d connections", again, len(server.Requests()), len(conns))
			}
		})
	}
}

// A connection to Apple begins with one stream, until the server knows us. A hundred pushes share it.
func TestAPNs_OneStream(t *testing.T) {
	one := http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}
	many := http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000}
	for name, handle := range map[string]func(raised *atomic.Bool, r http2server.Request){
		"raised before the answer": func(raised *atomic.Bool, r http2server.Request) {
			if raised.CompareAndSwap(false, true) {
				r.Conn.WriteSettings(many)
			}
			r.Answer(200)
		},
		"raised after the answer": func(raised *atomic.Bool, r http2server.Request) {
			r.Answer(200)
			if raised.CompareAndSwap(false, true) {
				r.Conn.WriteSettings(many)
			}
		},
		"never raised": func(_ *atomic.Bool, r http2server.Request) { r.Answer(200) },
	} {
		t.Run(name, func(t *testing.T) {
			var raised atomic.Bool
			server := http2server.Listen(t, func(r http2server.Request) { handle(&raised, r) }, one)
			results := sendAtOnce(t, apnsTo(t, server, 20*time.Second), 100)
			got := fmt.Sprint(outcomes(results))
			t.Logf("%s over %d connections", got, len(server.Conns()))
			if want := fmt.Sprint(map[push.Outcome]int{push.Delivered: 100}); got != want || len(server.Conns()) > 2 || len(server.Requests()) != 100 {
				t.Errorf("%s over %d connections, %d requests", got, len(server.Conns()), len(server.Requests()))
			}
		})
	}
}
