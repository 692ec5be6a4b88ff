package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// counting is an authenticator that knows keys by their hash.
type counting struct {
	known map[[32]byte]push.Caller
	asked int
	err   error
	seen  chan uuid.UUID
}

func (c *counting) RecordKeyUse(_ context.Context, id uuid.UUID) error {
	c.seen <- id
	return errors.New("not noted")
}

func (c *counting) Key(_ context.Context, hash [32]byte) (push.Caller, error) {
	c.asked++
	if c.err != nil {
		return push.Caller{}, c.err
	}
	caller, ok := c.known[hash]
	if !ok {
		return caller, push.ErrNotFound
	}
	return caller, nil
}

func TestKeyCache_RemembersForASecond(t *testing.T) {
	now := time.Now()
	good, bad := [32]byte{1}, [32]byte{2}
	c := &counting{known: map[[32]byte]push.Caller{good: {Scopes: []string{"s"}}}}
	k := newKeyCache(c, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	find := func(hash [32]byte, wantErr error, wantAsked int) {
		t.Helper()
		if _, err := k.find(t.Context(), func() string { return "here" }, hash); !errors.Is(err, wantErr) || c.asked != wantAsked {
			t.Errorf("error %v after %d questions, want %v after %d", err, c.asked, wantErr, wantAsked)
		}
	}
	find(good, nil, 1)
	find(bad, push.ErrNotFound, 2)
	now = now.Add(999 * time.Millisecond)
	find(bad, push.ErrNotFound, 2)
	now = now.Add(time.Millisecond)
	find(bad, push.ErrNotFound, 3)
	find(good, nil, 4) // its second is over, too
	now = now.Add(999 * time.Millisecond)
	delete(c.known, good)
	find(good, nil, 4)
	now = now.Add(time.Millisecond)
	find(good, push.ErrNotFound, 5)

	// Failures are not remembered.
	c.err = push.ErrUnavailable
	now = now.Add(time.Hour)
	find(good, push.ErrUnavailable, 6)
	find(good, push.ErrUnavailable, 7)
}

// TestKeyCache_EndsWithTheKey: what is remembered does not outlive the key, by however little.
func TestKeyCache_EndsWithTheKey(t *testing.T) {
	now := time.Now()
	good := [32]byte{1}
	c := &counting{known: map[[32]byte]push.Caller{good: {Left: 300 * time.Millisecond}}}
	k := newKeyCache(c, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if _, err := k.find(t.Context(), func() string { return "here" }, good); err != nil {
		t.Fatal(err)
	}
	c.known = nil // as Postgres will say from then on
	now = now.Add(300*time.Millisecond - 1)
	if _, err := k.find(t.Context(), func() string { return "here" }, good); err != nil {
		t.Errorf("in its last nanosecond: %v", err)
	}
	now = now.Add(1)
	if _, err := k.find(t.Context(), func() string { return "here" }, good); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("after its end: %v", err)
	}
}

// TestKeyCache_AsksOnce: many requests with one key cause one query, and one of them records its use. An error of the record is
// ignored.
func TestKeyCache_AsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id, good := uuid.New(), [32]byte{1}
		c := &counting{known: map[[32]byte]push.Caller{good: {Key: id, Unseen: true}}, seen: make(chan uuid.UUID, 64)}
		slow := slowly{c}
		k := newKeyCache(slow, time.Now, slog.New(slog.DiscardHandler))
		for range 64 {
			go func() {
				if caller, err := k.find(t.Context(), func() string { return "here" }, good); err != nil || caller.Key != id {
					t.Errorf("%+v, %v", caller, err)
				}
			}()
		}
		time.Sleep(900 * time.Millisecond) // of the bubble: longer than slowly takes, and less than a key is known for
		synctest.Wait()
		if c.asked != 1 || len(c.seen) != 1 || <-c.seen != id {
			t.Errorf("asked %d times, noted %d more", c.asked, len(c.seen))
		}
	})
}

// slowly takes a moment for every answer.
type slowly struct{ *counting }

func (s slowly) Key(ctx context.Context, hash [32]byte) (push.Caller, error) {
	time.Sleep(100 * time.Millisecond) // of the bubble
	return s.counting.Key(ctx, hash)
}

// TestKeyCache_Bounded: guesses neither fill the memory nor drive out a key.
func TestKeyCache_Bounded(t *testing.T) {
	now := time.Now()
	good := [32]byte{1}
	c := &counting{known: map[[32]byte]push.Caller{good: {}}}
	k := newKeyCache(c, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if _, err := k.find(t.Context(), func() string { return "here" }, good); err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxRemember + 50 {
		_, _ = k.find(t.Context(), func() string { return "here" }, [32]byte([]byte(fmt.Sprintf("%032d", i))))
	}
	if len(k.unknown) > maxRemember || len(k.unknown) < maxRemember/2 {
		t.Errorf("%d guesses are remembered", len(k.unknown))
	}
	asked := c.asked
	if _, err := k.find(t.Context(), func() string { return "here" }, good); err != nil || c.asked != asked {
		t.Errorf("the good key was driven out: %v", err)
	}
	now = now.Add(time.Minute)
	_, _ = k.find(t.Context(), func() string { return "here" }, [32]byte{3})
	if len(k.unknown) > maxRemember {
		t.Errorf("%d guesses are remembered", len(k.unknown))
	}
}

// slowKeys answers no request until it is released.
type slowKeys struct {
	mu    sync.Mutex
	under int
	most  int
	open  chan struct{}
}

func (s *slowKeys) RecordKeyUse(context.Context, uuid.UUID) error { return nil }

func (s *slowKeys) Key(context.Context, [32]byte) (push.Caller, error) {
	s.mu.Lock()
	s.under++
	s.most = max(s.most, s.under)
	s.mu.Unlock()
	<-s.open
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under--
	return push.Caller{}, push.ErrNotFound
}

// TestKeyCache_BoundsGuesses: a hundred guesses from one address are looked up one after another, and a caller
// from elsewhere waits for none of them.
func TestKeyCache_BoundsGuesses(t *testing.T) {
	s := &slowKeys{open: make(chan struct{})}
	k := newKeyCache(s, time.Now, slog.New(slog.DiscardHandler))
	var all sync.WaitGroup
	under := func(want int) {
		t.Helper()
		testenv.Until(t, time.Millisecond, fmt.Sprintf("%d lookups are under way", want), func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.under == want
		})
	}
	for i := range 100 {
		all.Go(func() { _, _ = k.find(t.Context(), func() string { return "guesser" }, [32]byte{byte(i)}) })
	}
	under(1)
	all.Go(func() { _, _ = k.find(t.Context(), func() string { return "elsewhere" }, [32]byte{200}) })
	under(2)
	close(s.open)
	all.Wait()
	if s.most != 2 {
		t.Errorf("%d lookups at a time", s.most)
	}
}
