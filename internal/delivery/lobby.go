package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// Lobby is where recipients wait whose next push may be sent in a moment. So
// they do not hold one of the places at which the worker delivers: after an
// outage, when most recipients have several pushes that are due, nearly all of
// them wait most of the time.
type Lobby struct {
	deliverer *Deliverer
	store     unarmer
	log       *slog.Logger
	places    chan struct{} // one element for each handler that is at work

	mu      sync.Mutex
	waiting map[int64]*waiter // by recipient key
	closed  bool
	left    []int64         // recipients that are to be woken elsewhere
	looking sync.WaitGroup  // those who wait, until they have looked again
	work    context.Context // of those who look; it ends when the lobby closes
	close   context.CancelFunc
}

type waiter struct {
	until time.Time
	timer *time.Timer
}

// unarmer is the part of the store that has others woken in our stead.
type unarmer interface {
	Unarm(ctx context.Context, recipientKeys []int64) error
}

// NewLobby returns a lobby in front of a deliverer that is to work on so many
// recipients at the same time.
func NewLobby(d *Deliverer, st unarmer, log *slog.Logger, concurrency int) *Lobby {
	l := &Lobby{deliverer: d, store: st, log: log, places: make(chan struct{}, concurrency), waiting: map[int64]*waiter{}}
	l.work, l.close = context.WithCancel(context.Background())
	return l
}

// Handle is [Deliverer.Handle], but for the waiting: it returns, and looks again
// by itself.
func (l *Lobby) Handle(ctx context.Context, w push.WakeUp) error {
	l.places <- struct{}{}
	pause, err := l.deliverer.pass(ctx, w)
	<-l.places
	if err == nil && pause > 0 && !l.seat(w, pause) {
		return push.Early{In: pause} // somebody else is to do it
	}
	return err
}

// seat has a recipient wait, unless the lobby is closed.
func (l *Lobby) seat(w push.WakeUp, pause time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	until := time.Now().Add(pause)
	if s := l.waiting[w.RecipientKey]; s != nil {
		if until.Before(s.until) && s.timer.Stop() {
			s.until = until
			s.timer.Reset(pause)
		}
		return true
	}
	l.looking.Add(1)
	l.waiting[w.RecipientKey] = &waiter{until, time.AfterFunc(pause, func() { l.look(w) })}
	return true
}

// look handles the recipient whose time has come, as often as it takes. Once the
// lobby is closed, that is for others to do.
func (l *Lobby) look(w push.WakeUp) {
	defer l.looking.Done()
	l.mu.Lock()
	delete(l.waiting, w.RecipientKey)
	l.mu.Unlock()
	err := l.Handle(l.work, w)
	if err == nil {
		return
	}
	pause := time.Second
	if early, ok := errors.AsType[push.Early](err); ok {
		pause = early.In // its wake-up is used up
	} else if l.work.Err() == nil {
		l.log.Warn("a recipient that waited was not handled; it is tried again", "error", err)
	}
	if !l.seat(w, pause) {
		l.mu.Lock()
		l.left = append(l.left, w.RecipientKey)
		l.mu.Unlock()
	}
}

// Run keeps the lobby open until ctx ends. Then it waits for those who look
// just now, and has the recipients that still wait woken elsewhere.
func (l *Lobby) Run(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	l.closed = true
	for key, s := range l.waiting {
		if s.timer.Stop() {
			l.left = append(l.left, key)
			l.looking.Done()
		}
	}
	l.mu.Unlock()
	l.close()
	l.looking.Wait()
	if len(l.left) == 0 {
		return nil
	}
	if err := l.store.Unarm(context.WithoutCancel(ctx), l.left); err != nil {
		l.log.Warn("recipients that wait are armed again only when their lease ends", "recipients", len(l.left), "error", err)
	}
	return nil
}
