package channel

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"github.com/sendquota/sendquota/internal/outbound"
)

// step is a step of an SMTP session.
type step string

// The steps. Only the dot at the end of the message hands it over: before it the server must not deliver anything (RFC
// 5321, 4.1.1.4).
const (
	stepGreeting step = "greeting"
	stepSTARTTLS step = "STARTTLS"
	stepAUTH     step = "AUTH"
	stepMAIL     step = "MAIL"
	stepRCPT     step = "RCPT"
	stepDATA     step = "DATA"
	stepEnd      step = "the end of the message"
)

var (
	errNoStartTLS = errors.New("the server does not offer STARTTLS, which the setting tls demands")
	errNoLogin    = errors.New("the server offers neither PLAIN nor LOGIN to sign in")
)

// delivery is the progress and the result of an SMTP session.
type delivery struct {
	at     step      // the last step taken
	handed time.Time // when the dot was written
	reply  string    // to the dot, if the server took the message
	err    error
}

// deliver hands a mail over that the server has accepted MAIL for.
func (c *mailConn) deliver(ctx context.Context, mail outgoing) delivery {
	if err := c.recipients(mail.to); err != nil {
		return delivery{at: stepRCPT, err: err}
	}
	return c.handOver(ctx, mail.text)
}

// recipients names the recipients. The server must take the first one, who is the recipient of the push. The others get copies:
// the mail goes out without those that the server refuses.
func (c *mailConn) recipients(to []string) error {
	for i, one := range to {
		err := c.smtp.Rcpt("<" + one + ">")
		reply, replied := errors.AsType[*textproto.Error](err)
		if err != nil && (i == 0 || !replied || reply.Code == 421) {
			return err
		}
	}
	return nil
}

// handOver sends the message, after its recipients.
func (c *mailConn) handOver(ctx context.Context, text []byte) delivery {
	w, err := c.smtp.Data()
	if err != nil {
		return delivery{at: stepDATA, err: err}
	}
	if _, err = w.Write(text); err == nil {
		err = c.smtp.Text.W.Flush()
	}
	// A worker that was frozen must not complete a message that counts as lost.
	if until, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(until) {
		err = outbound.ErrHeldUp
	}
	if err != nil {
		return delivery{at: stepDATA, err: err}
	}
	err = w.Close()
	written()
	if reply, ok := errors.AsType[*textproto.Error](err); ok && reply.Code/100 == 2 {
		err = nil // accepted, with an unusual code
	}
	d := delivery{at: stepEnd, handed: c.line.wrote, err: err}
	if w, ok := w.(*smtp.DataCloser); ok && err == nil {
		d.reply = w.ServerResponse()
	}
	return d
}

func (e *Email) hello(ctx context.Context, line *mailLine) (*smtp.Client, error) {
	var conn net.Conn = line
	if e.cfg.Security == TLS {
		secured := tls.Client(line, e.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secured
	}
	c, err := smtp.NewClient(conn, e.cfg.Host)
	if err != nil {
		return nil, err
	}
	c.SkipSMTPUTF8(true) // addresses are ASCII
	return c, c.Hello(e.cfg.MessageIDDomain)
}

func (e *Email) secure(c *smtp.Client) error {
	if e.cfg.Security != StartTLS {
		return nil
	}
	if ok, _ := c.Extension("STARTTLS"); !ok {
		return errNoStartTLS
	}
	return c.StartTLS(e.tls)
}

func (e *Email) login(c *smtp.Client) error {
	if e.cfg.Username == "" {
		return nil
	}
	_, offered := c.Extension("AUTH")
	switch ways := strings.Fields(strings.ToUpper(offered)); {
	case slices.Contains(ways, "PLAIN"):
		return c.Auth(smtp.PlainAuth("", e.cfg.Username, e.cfg.Password, e.cfg.Host, false))
	case slices.Contains(ways, "LOGIN"):
		return c.Auth(smtp.LoginAuth(e.cfg.Username, e.cfg.Password, e.cfg.Host, false))
	}
	return errNoLogin
}
