package channel

import (
	"bytes"

	gomail "github.com/wneessen/go-mail"

	"github.com/sendquota/sendquota/internal/push"
)

// compose writes a push as an e-mail. Its message id is the same on every attempt, so that a recipient that gets it
// twice can tell.
func (e *Email) compose(p push.Push) ([]byte, error) {
	in, m := open(p.Message), gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.SetGenHeader("From", headerAddress(e.from))
	if e.replyTo != nil {
		m.SetGenHeader("Reply-To", headerAddress(e.replyTo))
	}
	if err := m.To(p.To); err != nil {
		return nil, err
	}
	if title := in.text("title"); title != "" {
		m.Subject(headerText(title))
	}
	m.SetMessageIDWithValue(p.ID.String() + "@" + e.cfg.MessageIDDomain)
	m.SetDateWithValue(e.cfg.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	text, html := in.text("body"), in.text("html")
	switch {
	case html == "":
		m.SetBodyString(gomail.TypeTextPlain, text)
	case text == "":
		m.SetBodyString(gomail.TypeTextHTML, html)
	default:
		m.SetBodyString(gomail.TypeTextPlain, text)
		m.AddAlternativeString(gomail.TypeTextHTML, html)
	}
	var buf bytes.Buffer
	_, err := m.WriteTo(&buf)
	return buf.Bytes(), err
}
