package httpapi

import (
	"errors"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The bounds of a push's texts, in bytes.
const (
	maxRecipient = 128
	maxChannel   = 64
	maxCategory  = 64
	maxTo        = 512
)

// form is one push as a caller asks for it: what could be read, and what is
// wrong with the rest.
type form struct {
	schedule.Request
	fields

	// The times as they were written, for faults found later.
	sendAt, expiresAt, latest string
}

// newPush is the form's schema. Decoder and schema are held together by
// TestDecoderAgreesWithSchema.
type newPush struct {
	Recipient  string         `json:"recipient" minLength:"1" maxLength:"128" doc:"Whose quota is used: your own id of a person, 1 to 128 printable bytes." example:"user-42"`
	Message    messageView    `json:"message" doc:"What to send. It is handed to the provider as it is; channels may know more members."`
	Channel    string         `json:"channel,omitempty" maxLength:"64" doc:"The way out. Default: the first channel that is configured." example:"push"`
	Category   string         `json:"category,omitempty" maxLength:"64" doc:"A word of your own, at most 64 printable bytes." example:"marketing"`
	SendAt     string         `json:"send_at,omitempty" format:"date-time" doc:"When to send, with a zone. A fraction of a second is rounded up. Default: now." example:"2026-12-01T09:00:00+01:00"`
	To         string         `json:"to,omitempty" maxLength:"512" doc:"The address, where the channel needs one: a telephone number in E.164 form, an e-mail address, a registration or device token." example:"+4512345678"`
	ExpiresAt  string         `json:"expires_at,omitempty" format:"date-time" doc:"From then on it is not sent any more. Default: 24 hours, or as configured, after its send time." example:"2026-12-01T12:00:00Z"`
	OnConflict string         `json:"on_conflict,omitempty" enum:"reject,defer" default:"reject" doc:"What to do if the quota has no place at send_at: reject, or defer to the next free time."`
	Latest     string         `json:"latest,omitempty" format:"date-time" doc:"Do not defer to a time after this." example:"2026-12-02T09:00:00Z"`
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Anything of your own; it comes back with the push." example:"{\"campaign\": \"x\"}"`
}

// messageView is the schema of a message.
type messageView struct {
	_     struct{} `additionalProperties:"true"`
	Title string   `json:"title,omitempty" doc:"Of a notification; the subject of an e-mail. Not sent by SMS." example:"Sale"`
	Body  string   `json:"body,omitempty" doc:"The text." example:"Everything must go."`
	HTML  any      `json:"html,omitempty" doc:"Of an e-mail: the text in HTML, a string, beside body or instead of it."`
	APS   any      `json:"aps,omitempty" doc:"Through APNs: what is added to aps, such as sound and badge."`
	Data  any      `json:"data,omitempty" doc:"Any JSON. Through FCM and APNs, an object: its members are for the app."`
}

// readForm reads one push.
func readForm(r *reader) form {
	var f form
	if r.peek() != '{' {
		f.bad("", "must be an object", r.value())
		return f
	}
	for name := range r.members {
		raw := r.value()
		switch {
		case r.err != nil:
			return f
		case r.deep:
			f.bad(short(name), tooDeep, nil)
		default:
			f.read(name, raw)
		}
	}
	if f.Recipient == "" && !f.faulty("recipient") {
		f.missing("recipient")
	}
	if f.Message == nil && !f.faulty("message") {
		f.missing("message")
	}
	return f
}

const tooDeep = "must not be nested deeper than 100 levels"

func (f *form) read(name, raw []byte) {
	switch string(name) {
	case "recipient":
		f.Recipient = f.text("recipient", raw, 1, maxRecipient)
	case "channel":
		f.Channel = f.text("channel", raw, 0, maxChannel)
	case "category":
		f.Category = f.text("category", raw, 0, maxCategory)
	case "to":
		f.To = f.text("to", raw, 0, maxTo)
	case "send_at":
		f.SendAt, f.sendAt = f.time("send_at", raw)
	case "expires_at":
		f.ExpiresAt, f.expiresAt = f.time("expires_at", raw)
	case "latest":
		f.Latest, f.latest = f.time("latest", raw)
	case "on_conflict":
		f.Defer = f.oneOf("on_conflict", raw, "reject", "defer") == "defer"
	case "message":
		f.Message = f.object("message", raw)
		f.checkMessage(f.Message)
	case "metadata":
		f.Metadata = f.object("metadata", raw)
	default:
		f.unknown(name, raw)
	}
}

// checkMessage demands texts where every channel expects them.
func (f *form) checkMessage(message []byte) {
	if message == nil {
		return
	}
	r := newReader(message)
	for name := range r.members {
		raw := r.value()
		switch string(name) {
		case "title", "body":
			if raw[0] != '"' {
				f.bad("message."+string(name), "must be a string", raw)
			}
		}
	}
}

// validator finds what is wrong with a request beyond its form.
type validator interface {
	Validate(schedule.Request) invalid.FieldErrors
}

// complete adds what the schedule finds wrong with the fields that could be
// read, to a form that is not submitted because of other faults.
func (f *form) complete(v validator) {
	f.blame(v.Validate(f.Request))
}

// blame adds faults found by the schedule, with the values as they came.
func (f *form) blame(found invalid.FieldErrors) {
	unread := *f
	for _, one := range found {
		if unread.faulty(one.Field) || unread.faulty("channel") && dependsOnChannel(one.Field) {
			continue
		}
		value := one.Value
		if text, ok := value.(string); ok {
			value = shown(text)
		}
		if written := f.written(one.Field); written != "" {
			value = written
		}
		f.faults = append(f.faults, invalid.FieldError{Field: one.Field, Message: one.Message, Value: value})
	}
}

// dependsOnChannel tells of a field whose faults mean nothing for a push whose
// channel could not be read.
func dependsOnChannel(field string) bool { return field == "to" || within(field, "message") }

// written is how a time was written.
func (f *form) written(field string) string {
	switch field {
	case "send_at":
		return f.sendAt
	case "expires_at":
		return f.expiresAt
	case "latest":
		return f.latest
	}
	return ""
}

// under is the error that all faults of the form make, as one for the caller.
func (f *form) under(location string) error {
	var all faults
	all.addAll(location, f.faults)
	return all.err()
}

// explain gives the faults in an error of the schedule their places and the
// values as they came.
func (f *form) explain(location string, err error) error {
	var wrong invalid.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	f.blame(wrong)
	return f.under(location)
}
