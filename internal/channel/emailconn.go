package channel

import (
	"context"
	"errors"
	"net/textproto"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/sendquota/sendquota/internal/outbound"
)

// mailConn is a connection to a mail server that has signed in.
type mailConn struct {
	line  *mailLine
	smtp  *smtp.Client
	round int         // of the pool, when it was opened
	mails int         // that were begun over it
	dirty bool        // the last one was not completed
	timer *time.Timer // closes it while it is kept
}

// transfer hands a mail over through a connection that was kept, or through a new one.
func (e *Email) transfer(ctx context.Context, mail outgoing) Result {
	c := e.resume(ctx, mail.from)
	if c == nil {
		conn, err := e.dial(ctx, "tcp", e.address)
		if err != nil {
			return down("no connection: " + outbound.Reason(err))
		}
		c = &mailConn{line: newMailLine(ctx, conn), round: e.pool.round()}
		if d := e.open(ctx, c, mail.from); d.err != nil {
			c.close(d.err)
			return e.classify(d)
		}
	}
	d := c.deliver(ctx, mail)
	e.settle(c, d.err)
	return e.classify(d)
}

// resume begins a mail on a connection that was kept. The server may have closed it meanwhile, or want no more mails through it:
// until it has accepted MAIL, another connection is as good. Then the result is nil. It takes a quarter of the time-out at
// most, so that there is time for the other one.
func (e *Email) resume(ctx context.Context, from string) *mailConn {
	c := e.pool.take()
	if c == nil {
		return nil
	}
	soon, cancel := context.WithTimeout(ctx, e.cfg.Timeout/4)
	defer cancel()
	c.line.attach(soon)
	var err error
	if c.dirty {
		err = c.smtp.Reset()
	}
	if err == nil {
		err = c.smtp.Mail("<" + from + ">")
	}
	if err != nil || !c.line.detach() {
		c.close(err)
		return nil
	}
	c.line.attach(ctx)
	c.mails++
	return c
}

// open greets the server, and begins a mail. The order of the steps is SMTP's.
func (e *Email) open(ctx context.Context, c *mailConn, from string) (d delivery) {
	for _, one := range []struct {
		at step
		do func() error
	}{
		{stepGreeting, func() (err error) {
			c.smtp, err = e.hello(ctx, c.line)
			return err
		}},
		{stepSTARTTLS, func() error { return e.secure(c.smtp) }},
		{stepAUTH, func() error { return e.login(c.smtp) }},
		{stepMAIL, func() error { return c.smtp.Mail("<" + from + ">") }},
	} {
		if err := one.do(); err != nil {
			return delivery{at: one.at, err: err}
		}
	}
	c.mails++
	return d
}

// settle keeps a connection if the server has answered last, and will take another mail.
func (e *Email) settle(c *mailConn, err error) {
	reply, replied := errors.AsType[*textproto.Error](err)
	class := 0
	if replied && reply.Code != 421 {
		class = reply.Code / 100
	}
	if err != nil && class != 4 && class != 5 {
		c.close(err)
		return
	}
	c.dirty = err != nil
	e.pool.put(c)
}

// rest ends the attempt that uses the connection. It returns false if that attempt was canceled: then the connection is closed.
func (c *mailConn) rest() bool {
	if c.line.detach() {
		return true
	}
	_ = c.line.Close()
	return false
}

// close closes a connection. It sends QUIT if the server has answered last, as RFC 5321, 4.1.1.10, requires.
func (c *mailConn) close(err error) {
	if _, answered := errors.AsType[*textproto.Error](err); (err == nil || answered) && c.smtp != nil {
		c.quit()
		return
	}
	_ = c.line.Close()
}

// quit says goodbye and closes the connection. The answer does not matter.
func (c *mailConn) quit() {
	_ = c.line.SetDeadline(time.Now().Add(time.Second))
	_ = c.smtp.Quit()
	_ = c.line.Close()
}
