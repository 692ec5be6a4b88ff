package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// memoryCall is a call of a tenant that waits for memory for a moment only.
func memoryCall(m memory, tenant uuid.UUID) (*Call, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	return &Call{Writer: &responseRecorder{}, Request: r, Caller: push.Caller{Tenant: tenant}, memory: m}, cancel
}

// fill reserves as often as it can, and returns the calls that have memory, with the status and the Retry-After of the
// answer to the first that has none.
func fill(t *testing.T, m memory, tenant uuid.UUID, bytes int64) (has []*Call, status int, retry string) {
	t.Helper()
	for range 10_000 {
		c, cancel := memoryCall(m, tenant)
		err := c.Reserve(bytes)
		cancel()
		if err != nil {
			p, foreseen := (&API{cfg: Config{Problem: func(error) Problemer { return nil }}}).problemOf(err)
			if !foreseen {
				t.Fatalf("unforeseen: %v", err)
			}
			return has, p.Base().Status, p.Base().header.Get("Retry-After")
		}
		has = append(has, c)
	}
	t.Fatal("there is no bound")
	return nil, 0, ""
}

// TestMemory_Parts: a tenant has its part of the memory, all of them have the whole, and pages are no reason to refuse
// small requests. What is given back can be had again.
func TestMemory_Parts(t *testing.T) {
	const whole = 160 << 20
	m := newMemory(whole)
	var all []*Call
	first := 0
	for n := range 200 {
		got, status, retry := fill(t, m, uuid.New(), PageBytes)
		all = append(all, got...)
		if n == 0 {
			first = len(got)
			if used := int64(first) * PageBytes; used == 0 || used > whole/4 || status != http.StatusTooManyRequests {
				t.Errorf("the first tenant has %d bytes, and is answered %d", used, status)
			}
		}
		if retry == "" {
			t.Errorf("a %d without Retry-After", status)
		}
		if len(got) == 0 {
			if status != http.StatusServiceUnavailable {
				t.Errorf("where nothing is left, it is answered %d", status)
			}
			break
		}
	}
	if used := int64(len(all)) * PageBytes; used > whole/2 {
		t.Errorf("all have %d bytes", used)
	}
	small, status, retry := fill(t, m, uuid.New(), bodyBytes(300))
	if len(small) < 100 || status != http.StatusTooManyRequests || retry == "" {
		t.Errorf("beside the pages there is room for %d small requests, then %d", len(small), status)
	}
	for _, c := range all {
		c.Writer.memory.Release()
	}
	if again, _, _ := fill(t, m, uuid.New(), PageBytes); len(again) != first {
		t.Errorf("the next tenant has room for %d pages, the first one had for %d", len(again), first)
	}
}

// TestMemory_OfBatches: the bytes of batches that are on their way are bounded, and given back if the caller goes away.
func TestMemory_OfBatches(t *testing.T) {
	m, tenant := newMemory(160<<20), uuid.New()
	gone, stuck := errors.New("gone"), make(chan error)
	reading := 0
	for ; reading < 100; reading++ {
		c, cancel := memoryCall(m, tenant)
		defer cancel()
		c.Request.ContentLength = MaxBatchBody
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := c.readWithin(MaxBatchBody, func() ([]byte, error) { close(began); return nil, <-stuck })
			ended <- err
		}()
		select {
		case <-began:
			continue
		case err := <-ended:
			if p, _ := (&API{cfg: Config{Problem: func(error) Problemer { return nil }}}).problemOf(err); p.Base().Status != http.StatusTooManyRequests {
				t.Errorf("a batch beyond the part: %v", err)
			}
		}
		break
	}
	if reading == 0 || reading > 8 {
		t.Errorf("%d large batches of one tenant are read at a time", reading)
	}
	for range reading {
		stuck <- gone
	}
	for tries := 0; ; tries++ { // the last of them is about to give back
		c, cancel := memoryCall(m, tenant)
		c.Request.ContentLength = MaxBatchBody
		_, err := c.readWithin(MaxBatchBody, func() ([]byte, error) { return nil, gone })
		cancel()
		if errors.Is(err, gone) {
			return
		}
		if tries > 10_000 {
			t.Fatal("it was not given back:", err)
		}
	}
}
