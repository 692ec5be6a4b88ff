package config

import (
	"net/mail"
	"net/netip"
	"regexp"
)

// What EmailSettings.TLS may be.
const (
	StartTLS = "starttls" // begins in the clear, and goes on over TLS or not at all
	TLS      = "tls"      // from the first byte
	NoTLS    = "none"
)

// EmailSettings are those of a channel of e-mail.
type EmailSettings struct {
	Host               string // of the SMTP server
	Port               int
	TLS                string // StartTLS, TLS or NoTLS
	Username, Password Secret // both or neither
	From               string // an address, which may have a name
	ReplyTo            string // the same; empty: none
	MessageIDDomain    string // empty: that of From
}

var hostShape = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

func (e *EmailSettings) fields() []field {
	return []field{
		{"host", required, "the SMTP server's name or address", host(&e.Host)},
		{"port", "587", "the SMTP server's port; 465 is usual for tls: tls", integer(&e.Port, 1, 65535)},
		{"tls", StartTLS, "starttls (demanded of the server), tls (from the first byte), or none, which needs allow_private_addresses: true", oneOf(&e.TLS, StartTLS, TLS, NoTLS)},
		{"username", optional, "who signs in; without it, nobody does; may use ${ENV_NAME}", expanded(&e.Username, checkNotEmpty)},
		{"password", optional, "may use ${ENV_NAME}", expanded(&e.Password, checkNotEmpty)},
		{"from", required, `the sender, such as "Shop <shop@example.com>"`, mailAddress(&e.From)},
		{"reply_to", optional, "where answers go", mailAddress(&e.ReplyTo)},
		{"message_id_domain", optional, "the domain in message ids; without it, that of from", shaped(&e.MessageIDDomain, hostShape, "a domain such as example.com")},
	}
}

func (c *Channel) checkEmail(p place) {
	p.together("username", "password")
	p.together("password", "username")
	if c.Email.TLS != NoTLS {
		return
	}
	if !c.AllowPrivateAddresses {
		p.child("tls").fault("must be %s or %s, unless allow_private_addresses is true", StartTLS, TLS)
	}
	if password := p.child("password"); password.given() {
		password.refuse("is not allowed with tls: %s, over which it would go in the clear", NoTLS)
	}
}

func host(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if _, err := netip.ParseAddr(s); ok && err != nil && !hostShape.MatchString(s) {
			p.fault("must be a host's name or address, without a port")
			return
		}
		*to = s
	}}
}

func mailAddress(to *string) reader {
	return reader{into: func(p place) {
		s, ok := p.text()
		if _, err := mail.ParseAddress(s); ok && err != nil {
			p.fault("must be one e-mail address, such as shop@example.com or Shop <shop@example.com>")
			return
		}
		*to = s
	}}
}
