package channel

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// maxSubject keeps the subject on one line of at most 998 bytes (RFC 5322, 2.1.1), even if it has no space to fold at.
const maxSubject = 900 // bytes

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

	From            string // an address, which may have a name: "Shop <shop@example.com>"
	ReplyTo         string // the same; may be empty
	MessageIDDomain string // the part of message ids after the @; default: the domain of From
}

// Email is an e-mail channel over an SMTP server.
type Email struct {
	cfg     EmailConfig
	address string // of the server, host:port
	from    *mail.Address
	replyTo *mail.Address // nil: none
	tls     *tls.Config
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
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
	_, domain, _ := strings.Cut(e.from.Address, "@")
	cfg.MessageIDDomain = cmp.Or(cfg.MessageIDDomain, domain)
	e.cfg = cfg
	e.dial = outbound.NewDialer(cfg.Timeout, cfg.AllowPrivateAddresses).DialContext
	e.tls = &tls.Config{ServerName: cfg.Host, RootCAs: cfg.Roots, MinVersion: tls.VersionTLS12}
	return e, nil
}

// ownAddress parses an address of the settings, which may have a name. It converts the domain to its xn-- form, so that
// the rule of a recipient's address applies to it, too.
func ownAddress(s string) (*mail.Address, error) {
	a, err := mail.ParseAddress(s)
	if err != nil {
		return nil, errors.New("is not an e-mail address")
	}
	at := strings.LastIndexByte(a.Address, '@')
	domain, err := idna.Lookup.ToASCII(a.Address[at+1:])
	if a.Address = a.Address[:at+1] + domain; err != nil || !isMailbox(a.Address) {
		return nil, errors.New("must have an ASCII name before the @, and a domain that can be written in its xn-- form")
	}
	return a, nil
}

// Check requires one address without a name, and a text in message.body or message.html. The subject, which is the
// title, must be one line.
func (e *Email) Check(to string, raw json.RawMessage) invalid.FieldErrors {
	var faults invalid.FieldErrors
	if !isMailbox(to) {
		faults = append(faults, wrongAddress(to, "one e-mail address in ASCII, without a name, such as anna@example.com"))
	}
	m := open(raw)
	if m["html"] != nil && m["html"][0] != '"' {
		faults = append(faults, invalid.FieldError{Field: "message.html", Message: "must be a string"})
	} else if m.text("body") == "" && m.text("html") == "" {
		faults = append(faults, invalid.FieldError{Field: "message.body", Message: "must be a non-empty string, unless message.html is one"})
	}
	switch title := m.text("title"); {
	case strings.ContainsFunc(title, unicode.IsControl):
		faults = append(faults, invalid.FieldError{Field: "message.title", Message: "must be one line, because it is the subject"})
	case len(title) > maxSubject:
		faults = append(faults, tooLong("message.title", maxSubject, len(title), "bytes"))
	}
	return faults
}

// isMailbox reports whether s is an address as in an envelope, and nothing else: no name, no list, no comment, no
// quotes, nothing that could end a line.
func isMailbox(s string) bool {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 {
		return false
	}
	local, _, _ := strings.Cut(s, "@")
	return len(local) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Send hands the message to the server once, over a new connection.
func (e *Email) Send(ctx context.Context, p push.Push, _ int) Result {
	if r, bad := unfit(e, p); bad {
		return r
	}
	text, err := e.compose(p)
	if err != nil { // its text may quote the message
		return Result{Outcome: push.Refused, Final: true, Error: "not sent: the message cannot be written as an e-mail"}
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	conn, err := e.dial(ctx, "tcp", e.address)
	if err != nil {
		return down("no connection: " + outbound.Reason(err))
	}
	line := newMailLine(ctx, conn)
	defer line.Close()
	return e.classify(e.deliver(ctx, line, p.To, text))
}
