package config

import "github.com/sendquota/sendquota/internal/strictyaml"

// The values of EmailSettings.TLS.
const (
	StartTLS = "starttls" // begins unencrypted, and sends nothing else without TLS
	TLS      = "tls"      // from the first byte
	NoTLS    = "none"
)

// EmailSettings are the settings of a channel for e-mail.
type EmailSettings struct {
	Host               string // of the SMTP server
	Port               int
	TLS                string   // StartTLS, TLS or NoTLS
	Username, Password Secret   // both or neither
	From               string   // an address, which may have a name
	ReplyTo            string   // the same; empty: none
	AllowedFrom        []string // further senders that a message may choose
	BounceAddress      string   // the sender of the envelope, with {id} for the id of the push; empty: the sender of the message
	DKIM               DKIM
	MessageIDDomain    string // empty: the domain of From
	Events             EmailEvents
}

// DKIM are the settings of the signature of e-mails. Without a domain there is none.
type DKIM struct {
	Domain, Selector string
	KeyFile          string // PEM
}

func (d *DKIM) settings(t *strictyaml.Table) {
	t.String("domain", required, "the domain that signs, such as the domain of from", &d.Domain, shaped(hostShape, "a domain such as example.com"))
	t.String("selector", required, "the name of the key in the DNS: its record is at selector._domainkey.domain", &d.Selector, shaped(hostShape, "a name of letters, digits, dashes and dots"))
	t.String("key_file", required, "the path of the private key, in PEM form: RSA with 2048 bits (at least 1024), or Ed25519", &d.KeyFile, checkPath)
}

func (c *Channel) email(t *strictyaml.Table) {
	e := &c.Email
	t.String("host", required, "the SMTP server's name or address", &e.Host, checkHost)
	t.Example("smtp.example.com")
	t.Int("port", "587", "the SMTP server's port; 465 is usual for tls: tls", &e.Port, 1, 65535)
	t.OneOf("tls", StartTLS, "starttls (demanded of the server), tls (from the first byte), or none, which needs allow_private_addresses: true", &e.TLS, StartTLS, TLS, NoTLS)
	t.Secret("username", optional, "the user name; without it, the channel does not sign in; may use ${ENV_NAME}", &e.Username, checkNotEmpty)
	t.Secret("password", optional, "the password of the user; may use ${ENV_NAME}", &e.Password, checkNotEmpty)
	t.String("from", required, `the sender, such as "Shop <shop@example.com>"`, &e.From, checkMailAddress)
	t.Example("Shop <shop@example.com>")
	t.String("reply_to", optional, "the address for replies", &e.ReplyTo, checkMailAddress)
	t.Example("help@example.com")
	t.Strings("allowed_from", optional, "further senders that a message may choose with from, in the form of from", &e.AllowedFrom)
	t.Example("Help <help@example.com>")
	t.String("bounce_address", optional, "the sender of the envelope, which gets bounces; {id} stands for the push's id; without it, the sender of the message", &e.BounceAddress, checkBounceAddress)
	t.Example("bounces+{id}@example.com")
	if c.Own == nil {
		t.Section("dkim", optional, "the DKIM signature of each mail; without it, none", e.DKIM.settings)
	} else {
		t.Unsupported("dkim", "is for channels of the operator only: its key is a file")
	}
	t.String("message_id_domain", optional, "the domain in message ids; without it, the domain of from", &e.MessageIDDomain, shaped(hostShape, "a domain such as example.com"))
	t.Example("example.com")
	e.Events.settings(t)
	t.Needs("username", "password")
	t.Needs("password", "username")
	t.Check(func(p strictyaml.Node) {
		for i, one := range e.AllowedFrom {
			if wrong := checkMailAddress(one); wrong != "" {
				p.Child("allowed_from").Item(i).BadValue("%s", wrong)
			}
		}
	})
	t.Check(func(p strictyaml.Node) {
		if e.TLS != NoTLS {
			return
		}
		if !c.AllowPrivateAddresses {
			p.Child("tls").BadValue("must be %s or %s, unless allow_private_addresses is true", StartTLS, TLS)
		}
		if password := p.Child("password"); password.Given() {
			password.BadKey("is not allowed with tls: %s, which would send it unencrypted", NoTLS)
		}
	})
}
