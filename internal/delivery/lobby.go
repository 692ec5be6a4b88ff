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
	waiting map[seat]*waiter
	closed  bool
	left    []int64         // recipients that are to be woken elsewhere, since the lobby is closed
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

// seat is who waits, and at which channel its wake-up was for.
type seat struct {
	recipient int64
	channel   string
}

// NewLobby returns a lobby in front of a deliverer.
func NewLobby(d *Deliverer, st unarmer, log *slog.Logger) *Lobby {
	l := &Lobby{deliverer: d, store: st, log: log, places: make(chan struct{}, d.cfg.Concurrency), waiting: map[seat]*waiter{}}
	l.work, l.close = context.WithCancel(context.Background())
	return l
}

// Handle is [Deliverer.Handle], but for the waiting: it returns, and looks again
// by itself, or when it is the recipient's turn at the channel.
func (l *Lobby) Handle(ctx context.Context, w push.WakeUp) error {
	line := l.deliverer.lines.byName[w.Channel]
	switch {
	case line == nil:
		return l.serve(ctx, w, &turn{})
	case line.enter():
		t := &turn{line: line, open: true}
		defer t.take()
		return l.serve(ctx, w, t)
	case line.join(w):
		return nil
	}
	return push.Early{In: time.Second} // somebody else is to do it
}

// serve does what can be done for a recipient now, at one of the places.
func (l *Lobby) serve(ctx context.Context, w push.WakeUp, t *turn) error {
	l.places <- struct{}{}
	pause, err := l.deliverer.pass(ctx, w, t)
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
	key := seat{w.RecipientKey, w.Channel}
	if s := l.waiting[key]; s != nil {
		if until.Before(s.until) && s.timer.Stop() {
			s.until = until
			s.timer.Reset(pause)
		}
		return true
	}
	l.looking.Add(1)
	l.waiting[key] = &waiter{until, time.AfterFunc(pause, func() { l.look(w) })}
	return true
}

// look handles the recipient whose time has come.
func (l *Lobby) look(w push.WakeUp) {
	defer l.looking.Done()
	l.mu.Lock()
	delete(l.waiting, seat{w.RecipientKey, w.Channel})
	l.mu.Unlock()
	l.settle(w, l.Handle(l.work, w))
}

// turns gives a turn at a channel to those who wait in line, one after another,
// until one has used it.
func (l *Lobby) turns(line *line) {
	defer l.looking.Done()
	t := &turn{line: line}
	defer t.take()
	for t.line != nil {
		w, ok := line.next()
		if !ok {
			return
		}
		l.settle(w, l.serve(l.work, w, t))
	}
}

// settle sees to it that a recipient who was not handled is, as often as it
// takes. Once the lobby is closed, that is for others to do.
func (l *Lobby) settle(w push.WakeUp, err error) {
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

// Run keeps the lobby open, and gives turns to those who wait in line, until ctx
// ends. Then it has those who wait woken elsewhere, waits for those who look just
// now, and does the same with what they leave.
func (l *Lobby) Run(ctx context.Context) error {
	lines := l.deliverer.lines
	var running sync.WaitGroup
	for _, line := range lines.all {
		running.Go(func() {
			line.run(ctx, lines.pacer, func() {
				l.looking.Add(1)
				go l.turns(line)
			})
		})
	}
	if lines.pacer != nil {
		running.Go(func() { _ = lines.pacer.Run(ctx, lines.names(), lines.paused) }) // it fails at nothing
	}
	<-ctx.Done()
	running.Wait()
	l.leave(l.empty())
	l.close()
	l.looking.Wait()
	l.leave(l.left)
	return nil
}

// leave has recipients woken elsewhere.
func (l *Lobby) leave(recipientKeys []int64) {
	if len(recipientKeys) == 0 {
		return
	}
	if err := l.store.Unarm(context.Background(), recipientKeys); err != nil {
		l.log.Warn("recipients that wait are armed again only when their lease ends", "recipients", len(recipientKeys), "error", err)
	}
}

// empty closes the lobby and the lines, and returns who waited.
func (l *Lobby) empty() (recipientKeys []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for key, s := range l.waiting {
		if s.timer.Stop() {
			recipientKeys = append(recipientKeys, key.recipient)
			l.looking.Done()
		}
	}
	for _, line := range l.deliverer.lines.all {
		recipientKeys = append(recipientKeys, line.close()...)
	}
	return recipientKeys
}

// Busy lists the tenants of whose recipients so many wait in line at a channel that there
// is no need to find more; 0: so many that these do not run out for several seconds.
func (l *Lobby) Busy(enough int) []push.Source { return l.deliverer.lines.long(enough) }

// Waiting counts those who wait in line, by channel.
func (l *Lobby) Waiting() map[string]int {
	waiting := map[string]int{}
	for _, line := range l.deliverer.lines.all {
		waiting[line.channel] = line.len()
	}
	return waiting
}

// Held lists for how long each channel is still left alone, because its provider
// fails or asked for a pause.
func (l *Lobby) Held() map[string]time.Duration {
	held := map[string]time.Duration{}
	for _, line := range l.deliverer.lines.all {
		held[line.channel] = line.held()
	}
	return held
}
