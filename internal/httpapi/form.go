package httpapi

import (
	"bytes"
	"errors"
	"strings"
	"time"

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

// form is one push as a caller asks for it: what could be read, and what is wrong with the rest.
type form struct {
	schedule.Request
	fieldErrors
	of   *table[form] // by which it was read
	text []byte       // of the JSON object; nil: it was none
}

// pushFields is a push to be submitted.
var pushFields = table[form]{schemaName: "NewPush", fields: []field[form]{
	{"recipient", required, text(func(f *form, s string) { f.Recipient = s }, 1, maxRecipient),
		"The person whose quota is used: an id of your choice, 1 to 128 printable bytes.", "user-42"},
	{"message", required, anyObject(func(f *form, raw []byte) { f.Message = raw }).shaped(&messageFields),
		"The content. It is passed to the provider as it is; channels may support more members.", nil},
	{"channel", optional, text(func(f *form, s string) { f.Channel = s }, 0, maxChannel),
		"The channel that delivers the push. Default: the first one that is configured.", "push"},
	{"category", optional, text(func(f *form, s string) { f.Category = s }, 0, maxCategory),
		"A label of your choice, at most 64 printable bytes.", "marketing"},
	{"send_at", optional, moment(func(f *form, t time.Time) { f.SendAt = t }),
		"When to send, with a zone. A fraction of a second is rounded up. Default: now.", "2026-12-01T09:00:00+01:00"},
	{"to", optional, text(func(f *form, s string) { f.To = s }, 0, maxTo),
		"The address, if the channel needs one: a telephone number in E.164 form, an e-mail address, a registration or device token.", "+4512345678"},
	{"expires_at", optional, moment(func(f *form, t time.Time) { f.ExpiresAt = t }),
		"The push is not sent at or after this time. Default: 24 hours, or as configured, after its send time.", "2026-12-01T12:00:00Z"},
	{"on_conflict", optional, oneOf(func(f *form, s string) { f.Defer = s == "defer" }, "reject", "defer").or("reject"),
		"What to do if the quota has no place at send_at: reject, or defer to the next free time.", nil},
	{"latest", optional, moment(func(f *form, t time.Time) { f.Latest = t }),
		"Do not defer to a time after this.", "2026-12-02T09:00:00Z"},
	{"metadata", optional, anyObject(func(f *form, raw []byte) { f.Metadata = raw }),
		"Anything of your own; it comes back with the push.", map[string]any{"campaign": "x"}},
}}

// messageFields is the message of a push: what every channel expects as a text.
var messageFields = table[struct{}]{schemaName: "Message", open: true, fields: []field[struct{}]{
	{"title", optional, anyText(), "The title of a notification; the subject of an e-mail. Not sent by SMS.", "Sale"},
	{"body", optional, anyText(), "The text.", "Everything must go."},
	{"html", optional, anything(), "For e-mail: the text in HTML, a string, in addition to body or instead of it.", nil},
	{"aps", optional, anything(), "For APNs: members to add to aps, such as sound and badge.", nil},
	{"data", optional, anything(), "Any JSON. For FCM and APNs, an object: its members are for the app.", nil},
}}

// read reads a push, or what the table has of one.
func (f *form) read(r *reader, of *table[form]) {
	f.of = of
	f.text = of.read(r, f, &f.fieldErrors)
}

// validator finds what is wrong with a request beyond its form.
type validator interface {
	Validate(schedule.Request) invalid.FieldErrors
}

// complete adds what the schedule finds wrong with the fields that could be read, to a form that is not submitted
// because of other errors.
func (f *form) complete(v validator) {
	if f.text != nil {
		f.blame(v.Validate(f.Request))
	}
}

// blame adds errors found by the schedule, of the fields that the caller could send and that could be read.
func (f *form) blame(found invalid.FieldErrors) {
	unread := f.fieldErrors
	for _, one := range found {
		name, _, _ := strings.Cut(one.Field, ".")
		if f.of.find(name) >= 0 && !unread.has(one.Field) && !(unread.has("channel") && dependsOnChannel(one.Field)) {
			f.add(one.Field, one.Message, asWritten(f.text, one))
		}
	}
}

// dependsOnChannel tells of a field whose errors mean nothing for a push whose channel could not be read.
func dependsOnChannel(field string) bool { return field == "to" || within(field, "message") }

// asWritten is the value of an error, as it was written in the text of an object.
func asWritten(object []byte, e invalid.FieldError) any {
	var raw []byte
	if e.Value != nil && object != nil {
		r := newReader(object)
		for name := range r.members {
			this := bytes.Equal(name, []byte(e.Field))
			if value := r.value(); this {
				raw = value
			}
		}
	}
	if raw != nil {
		return shownJSON(raw)
	}
	if text, ok := e.Value.(string); ok {
		return shown(text)
	}
	return e.Value
}

// under is the error that all errors of the form make, as one for the caller.
func (f *form) under(location string) error {
	var all fieldErrors
	all.addAll(location, f.fieldErrors)
	return all.err()
}

// explain gives the fields in an error of the schedule their places, and the values as they were written.
func (f *form) explain(location string, err error) error {
	var wrong invalid.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	if f.blame(wrong); len(f.list) == 0 {
		return err
	}
	return f.under(location)
}
