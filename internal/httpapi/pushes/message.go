package pushes

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/sms"
)

// showMessage is showMessages for one push, in the tenant's turn. Without a turn, the message stays as it was booked, because the
// request itself has succeeded.
func showMessage(c *rest.Call, p *push.Push) {
	if p.Rendering != nil {
		_ = c.Compute(func() error {
			p.Message = messageOf(p)
			return nil
		})
	}
}

// showMessages renders messages that contain the time of sending, as they were last sent or will be sent. The caller has a turn
// for computing. After the request has ended, messages stay as they were booked.
func showMessages(ctx context.Context, all []push.Push) {
	for i := range all {
		if all[i].Rendering != nil && ctx.Err() == nil {
			all[i].Message = messageOf(&all[i])
		}
	}
}

func messageOf(p *push.Push) []byte {
	at := p.NextAt
	switch {
	case len(p.Sends) > 0 && p.Status != push.Scheduled:
		at = p.Sends[len(p.Sends)-1].StartedAt
	case p.Status == push.Sent || p.Status == push.Failed:
		at = p.UpdatedAt
	}
	message, err := liquid.Again(p.Rendering, at)
	if err != nil {
		return p.Message
	}
	return message
}

// TextService measures the messages of channels that send text messages. is reports whether the channel is one.
type TextService interface {
	TextSize(tenant uuid.UUID, channel string, message json.RawMessage) (size sms.Size, is bool)
}

// SMSView is the size of a text message.
type SMSView struct {
	Encoding   sms.Encoding `json:"encoding" enum:"GSM-7,UCS-2" doc:"GSM-7, unless the text has a character that is not in the GSM 03.38 alphabet, such as an emoji."`
	Characters int          `json:"characters" doc:"In GSM-7, characters of the extension table, such as €, count twice. In UCS-2, an emoji counts once."`
	Segments   int          `json:"segments" doc:"The parts that the text is sent in, and that carriers charge for: one of 160 characters of GSM-7 or 70 units of UTF-16, or several of 153 or 67 each."`
}

// SMSViewOf shows the size of a message on a channel; nil: the channel sends no text messages.
func SMSViewOf(texts TextService, tenant uuid.UUID, channel string, message json.RawMessage) *SMSView {
	if texts == nil {
		return nil
	}
	size, is := texts.TextSize(tenant, channel, message)
	if !is {
		return nil
	}
	v := SMSView(size)
	return &v
}

func (v *SMSView) AppendJSON(b []byte) []byte {
	b = appendText(b, `{"encoding":`, string(v.Encoding))
	b = strconv.AppendInt(append(b, `,"characters":`...), int64(v.Characters), 10)
	b = strconv.AppendInt(append(b, `,"segments":`...), int64(v.Segments), 10)
	return append(b, '}')
}
