package httpapi

import (
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
)

// The bounds of a push's texts, in bytes.
const (
	maxRecipient = 128
	maxChannel   = 64
	maxCategory  = 64
	maxTo        = 512
	maxZone      = 64
)

// maxExpiresAfter is the longest time from a send time to the expiry.
const maxExpiresAfter = 8760 * time.Hour

// pushFields is the body of a submit: a row for each member of a push.
var pushFields = table[form]{schemaName: "NewPush", check: checkPush, fields: []field[form]{
	row("recipient", required, text(func(f *form, s string) { f.Recipient = s }, 1, maxRecipient),
		"The person whose quota is used: an id of your choice, 1 to 128 printable bytes.", "user-42"),
	row("message", required, anyObject(func(f *form, raw []byte) { f.Message = raw }).shaped(&messageFields),
		"The content. It is passed to the provider unchanged; channels may support more members.", nil),
	row("template", optional, boolean(func(f *form, v bool) { f.Template = v }).or("false"),
		"Every string in message is a Liquid template. Its variables are recipient, to if it is given, the members of variables, and the attributes of the recipient. The rendered templates are the message of the push.", nil),
	row("variables", optional, anyObject(func(f *form, raw []byte) { f.Variables = raw }),
		"Further variables for the templates of message, besides the attributes of the recipient. Only with template.", map[string]any{"first_name": "Aiko"}),
	row("channel", optional, named(func(f *form, s string) { f.Channel = s }, 0, maxChannel),
		"The channel that delivers the push. Default: the first one that is configured.", "push"),
	row("category", optional, named(func(f *form, s string) { f.Category = s }, 0, maxCategory),
		"A label of your choice, at most 64 printable bytes.", "marketing"),
	row("send_at", optional, moment(func(f *form, t time.Time) { f.SendAt = t }),
		"The send time, with a zone. A fraction of a second is rounded up. Default: now.", "2026-12-01T09:00:00+01:00"),
	row("local_time", optional, localMoment(func(f *form, t time.Time) { f.LocalTime = t }),
		"The send time on the clocks of time_zone, instead of send_at. A time that the clocks skip in spring means the first instant after the gap; a time that occurs twice in autumn means the first. Seconds are optional.", localExample),
	row("time_zone", optional, text(func(f *form, s string) { f.TimeZone = s }, 0, maxZone),
		"The zone of local_time, an IANA name. Default: the recipient's zone, or else the default zone of the policy.", "Asia/Tokyo"),
	row("to", optional, text(func(f *form, s string) { f.To = s }, 0, maxTo),
		"The address, if the channel needs one: a telephone number in E.164 form, an e-mail address, a registration or device token.", "+4512345678"),
	row("expires_at", optional, moment(func(f *form, t time.Time) { f.ExpiresAt = t }),
		"The push is not sent at or after this time. Default: 24 hours, or as configured, after its send time.", "2026-12-01T12:00:00Z"),
	row("on_conflict", optional, oneOf(func(f *form, s string) { f.Defer = s == "defer" }, "reject", "defer").or("reject"),
		"The action if the quota has no place at send_at: reject, or defer to the next free time.", nil),
	row("latest", optional, moment(func(f *form, t time.Time) { f.Latest = t }),
		"The latest time to defer to.", "2026-12-02T09:00:00Z"),
	row("metadata", optional, anyObject(func(f *form, raw []byte) { f.Metadata = raw }),
		"Your own data; it is returned with the push.", map[string]any{"campaign": "x"}),
}}

// messageFields is the message of a push: what every channel expects as a text.
var messageFields = table[struct{}]{schemaName: "Message", open: true, fields: []field[struct{}]{
	row("title", optional, anyText(), "The title of a notification; the subject of an e-mail. Not sent by SMS.", "Sale"),
	row("body", optional, anyText(), "The text.", "Everything must go."),
	row("html", optional, anything(), "For e-mail: the text in HTML, a string, in addition to body or instead of it.", nil),
	row("aps", optional, anything(), "For APNs: members to add to aps, for example sound and badge.", nil),
	row("data", optional, anything(), "Any JSON. For FCM and APNs, an object: its members are for the app.", nil),
}}

// checkPush finds what several members say together.
func checkPush(f *form, text []byte, errs *fieldErrors) {
	checkWhen(f, text, errs)
	checkTemplate(f, text, errs)
}

// checkTemplate refuses variables that no template knows.
func checkTemplate(f *form, text []byte, errs *fieldErrors) {
	if f.Variables != nil && !f.Template && !errs.has("template") {
		errs.add("variables", "must not be given without template", asWritten(text, invalid.FieldError{Field: "variables", Value: ""}))
	}
}

// checkWhen finds what the members that say when to send say together.
func checkWhen(f *form, text []byte, errs *fieldErrors) {
	switch {
	case !f.LocalTime.IsZero() && !f.SendAt.IsZero():
		errs.add("local_time", "must not be given together with send_at", asWritten(text, invalid.FieldError{Field: "local_time", Value: ""}))
	case f.TimeZone != "" && f.LocalTime.IsZero() && !errs.has("local_time"):
		errs.add("time_zone", "must not be given without local_time", shown(f.TimeZone))
	}
}
