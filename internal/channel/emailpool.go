package channel

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of kept connections.
const (
	mostMailConns = 4                // open at a time, of a channel in a process
	mailsPerConn  = 100              // servers limit the messages of a connection
	mailIdle      = 15 * time.Second // a connection is closed after so long without a mail
)

var errMailBusy = errors.New("not sent: all connections to the mail server were busy")

// mailPool keeps connections to a mail server. An attempt enters the pool, uses a kept connection or opens one, puts it back or
// closes it, and leaves. So at most mostMailConns connections are open.
type mailPool struct {
	slots   chan struct{}
	answers atomic.Int64 // how often the server has answered an attempt

	mu     sync.Mutex
	idle   []*mailConn
	rounds int // how often CloseIdle was called
}

func newMailPool() *mailPool { return &mailPool{slots: make(chan struct{}, mostMailConns)} }

// enter waits for one of the connections.
func (p *mailPool) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errMailBusy
	}
}

func (p *mailPool) leave() { <-p.slots }

// take returns the connection that was used last; nil: none is kept.
func (p *mailPool) take() *mailConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	c := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	c.timer.Stop()
	return c
}

// round returns the number of the current round: a connection that was opened in an earlier one is not kept.
func (p *mailPool) round() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rounds
}

// put keeps a connection for the next mail, or closes it.
func (p *mailPool) put(c *mailConn) {
	if !c.rest() {
		return
	}
	p.mu.Lock()
	keep := c.mails < mailsPerConn && c.round == p.rounds
	if keep {
		p.idle = append(p.idle, c)
		c.timer = time.AfterFunc(mailIdle, func() { p.expire(c) })
	}
	p.mu.Unlock()
	if !keep {
		c.quit()
	}
}

// expire closes a connection, unless an attempt has taken it.
func (p *mailPool) expire(c *mailConn) {
	p.mu.Lock()
	for i, one := range p.idle {
		if one == c {
			p.idle = append(p.idle[:i:i], p.idle[i+1:]...)
			p.mu.Unlock()
			c.quit()
			return
		}
	}
	p.mu.Unlock()
}

// closeIdle closes all connections that no attempt uses, and has the others closed after their attempts.
func (p *mailPool) closeIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.rounds = nil, p.rounds+1
	p.mu.Unlock()
	for _, c := range idle {
		c.timer.Stop()
		go c.quit() // a server that does not answer must not hold the caller
	}
}
