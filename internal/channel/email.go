package channel

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/address"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// How an [Email] protects its connection.
const (
	StartTLS = "starttls" // begins in the clear, and continues over TLS or not at all
	TLS      = "tls"      // from the first byte
	NoTLS    = "none"
)

// EmailConfig configures an [Email]. Host and From are required.
type EmailConfig struct {
	Connection

	Host     string
	Port     int    // default: 587
	Security string // default: StartTLS

	// The sign-in; without a user there is none. A password is sent over TLS only.
	Username, Password string

	From            string   // an address, which may have a name: "Shop <shop@example.com>"
	ReplyTo         string   // the same; may be empty
	AllowedFrom     []string // further senders that a message may choose, in the form of From
	BounceAddress   string   // the sender of the envelope, with {id} for the id of the push; empty: the sender of the message
	DKIM            DKIM
	MessageIDDomain string // the part of message ids after the @; default: the domain of From
}

// Email is an e-mail channel over an SMTP server.
type Email struct {
	cfg     EmailConfig
	address string // of the server, host:port
	from    *mail.Address
	replyTo *mail.Address // nil: none

	allowedFrom []mail.Address // besides from
	dkim        *dkimSigner    // nil: mails are not signed
	pool        *mailPool

	tls  *tls.Config
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewEmail returns a channel.
func NewEmail(cfg EmailConfig) (*Email, error) {
	cfg.Connection = cfg.settled()
	cfg.Security = cmp.Or(cfg.Security, StartTLS)
	e := &Email{address: net.JoinHostPort(cfg.Host, strconv.Itoa(cmp.Or(cfg.Port, 587)))}
	var err error
	switch {
	case cfg.Host == "":
		return nil, cfg.fault("host", "is missing")
	case cfg.Security == NoTLS && cfg.Password != "":
		return nil, cfg.fault("password", "must not be sent without TLS")
	}
	if e.from, err = ownAddress(cfg.From); err != nil {
		return nil, cfg.fault("from", err.Error())
	}
	if cfg.ReplyTo != "" {
		if e.replyTo, err = ownAddress(cfg.ReplyTo); err != nil {
			return nil, cfg.fault("reply_to", err.Error())
		}
	}
	for i, one := range cfg.AllowedFrom {
		a, err := ownAddress(one)
		if err != nil {
			return nil, cfg.fault(fmt.Sprintf("allowed_from[%d]", i), err.Error())
		}
		e.allowedFrom = append(e.allowedFrom, *a)
	}
	if cfg.BounceAddress != "" {
		if cfg.BounceAddress, err = bounceAddress(cfg.BounceAddress); err != nil {
			return nil, cfg.fault("bounce_address", err.Error())
		}
	}
	if cfg.DKIM != (DKIM{}) {
		var setting string
		if e.dkim, setting, err = newDKIMSigner(cfg.DKIM); err != nil {
			return nil, cfg.fault(setting, err.Error())
		}
	}
	_, domain, _ := strings.Cut(e.from.Address, "@")
	cfg.MessageIDDomain = cmp.Or(cfg.MessageIDDomain, domain)
	e.cfg, e.pool = cfg, newMailPool()
	e.dial = outbound.NewDialer(cfg.Timeout, cfg.AllowPrivateAddresses).DialContext
	e.tls = &tls.Config{ServerName: cfg.Host, RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}
	return e, nil
}

// ownAddress parses an address of the settings, by the rules of a recipient's address.
func ownAddress(s string) (*mail.Address, error) {
	a, err := address.Parse(s)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// Check requires one address, and a text in message.body or message.html. The subject, which is the title, must be one line.
// The other members of an e-mail are checked if they are there.
func (e *Email) Check(to string, raw json.RawMessage) invalid.FieldErrors {
	_, bad := e.members(to, raw)
	return bad
}

// Send hands the message to the server once. It waits for one of a few connections before it writes the mail, which may be
// large.
func (e *Email) Send(ctx context.Context, p push.Push, _ int) Result {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	before := e.pool.answers.Load()
	if err := e.pool.enter(ctx); err != nil {
		r := down(err.Error())
		r.Down = e.pool.answers.Load() == before && errors.Is(ctx.Err(), context.DeadlineExceeded) // a server that answers others is slow, and not down
		return r
	}
	defer e.pool.leave()
	in, bad := e.members(p.To, p.Message)
	if len(bad) > 0 {
		return misfit(bad)
	}
	mail, err := e.compose(p, in)
	if err != nil { // its text may quote the message
		return Result{Outcome: push.Refused, Final: true, Error: "not sent: the message cannot be written as an e-mail"}
	}
	r := e.transfer(ctx, mail)
	if !r.Down {
		e.pool.answers.Add(1)
	}
	return r
}

// CloseIdle implements [Connected].
func (e *Email) CloseIdle() { e.pool.closeIdle() }
