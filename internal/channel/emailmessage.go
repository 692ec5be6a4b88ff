package channel

import (
	"bytes"
	"mime"
	"net/mail"

	gomail "github.com/wneessen/go-mail"

	"github.com/sendquota/sendquota/internal/push"
)

// outgoing is an e-mail that is ready to be handed over.
type outgoing struct {
	from string   // of the envelope
	to   []string // of the envelope; the first is the recipient of the push, the others are copies
	text []byte
}

// compose writes a push as an e-mail. Its message id is the same on every attempt, so that a recipient that gets it
// twice can tell.
func (e *Email) compose(p push.Push, in mailMembers) (out outgoing, err error) {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	for _, h := range in.headers {
		m.SetGenHeader(gomail.Header(h.name), headerText(h.value))
	}
	m.SetGenHeader("From", headerAddress(&in.from))
	m.SetGenHeader("To", headerAddress(&in.to))
	for name, list := range map[string][]mail.Address{"Reply-To": in.replyTo, "Cc": in.cc} { // go-mail sorts headers
		if len(list) > 0 {
			m.SetGenHeader(gomail.Header(name), headerAddresses(list)...)
		}
	}
	if in.subject != "" {
		m.Subject(headerText(in.subject))
	}
	m.SetMessageIDWithValue(p.ID.String() + "@" + e.cfg.MessageIDDomain)
	m.SetDateWithValue(e.cfg.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	m.SetGenHeader("X-Sendquota-Push", p.ID.String())
	switch {
	case in.html == "":
		m.SetBodyString(gomail.TypeTextPlain, in.body)
	case in.body == "":
		m.SetBodyString(gomail.TypeTextHTML, in.html)
	default:
		m.SetBodyString(gomail.TypeTextPlain, in.body)
		m.AddAlternativeString(gomail.TypeTextHTML, in.html)
	}
	for _, a := range in.attachments {
		m.AttachReadSeeker("", bytes.NewReader(a.content), a.described)
	}
	var buf bytes.Buffer
	if _, err = m.WriteTo(&buf); err != nil {
		return out, err
	}
	return outgoing{from: in.from.Address, to: in.recipients(), text: buf.Bytes()}, nil
}

// described sets the headers of the part with an attachment. The library would write a name that is not ASCII as an
// encoded word within quotation marks, which RFC 2047 forbids: this is the form of RFC 2231.
func (a attachment) described(f *gomail.File) {
	f.Header.Set("Content-Type", a.media)
	f.Header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": a.name}))
}

// headerAddresses formats addresses for a header.
func headerAddresses(list []mail.Address) []string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = headerAddress(&list[i])
	}
	return texts
}
