package pushes

import (
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/sms"
)

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
