package pushes

import (
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The longest texts of a push, in bytes.
const (
	MaxRecipient = 128
	MaxChannel   = 64
	MaxCategory  = 64
	MaxTo        = 512
	MaxZone      = 64
)

// MaxExpiresAfter is the longest time from a send time to the expiry.
const MaxExpiresAfter = 8760 * time.Hour

// PushFields is the body of a submit: a row for each member of a push.
var PushFields = rest.Table[schedule.Request]{SchemaName: "NewPush", Check: checkPush, Fields: []rest.Field[schedule.Request]{
	rest.Row("recipient", rest.Required, rest.Text(func(p *schedule.Request, s string) { p.Recipient = s }, 1, MaxRecipient),
		"The person whose quota is used: an id of your choice, 1 to 128 printable bytes.", "user-42"),
	rest.Row("message", rest.Required, rest.AnyObject(func(p *schedule.Request, raw []byte) { p.Message = raw }).Shaped(&MessageFields),
		"The content. It is passed to the provider unchanged; channels may support more members.", nil),
	rest.Row("template", rest.Optional, rest.Boolean(func(p *schedule.Request, v bool) { p.Template = v }).Or("false"),
		"Every string in message is a Liquid template. Its variables are recipient, to if it is given, the members of variables, and the attributes of the recipient. The rendered templates are the message of the push.", nil),
	rest.Row("variables", rest.Optional, rest.AnyObject(func(p *schedule.Request, raw []byte) { p.Variables = raw }),
		"Further variables for the templates of message, besides the attributes of the recipient. Only with template.", map[string]any{"first_name": "Aiko"}),
	rest.Row("channel", rest.Optional, rest.Named(func(p *schedule.Request, s string) { p.Channel = s }, 0, MaxChannel),
		"The channel that delivers the push. Default: the first one that is configured.", "push"),
	rest.Row("category", rest.Optional, rest.Named(func(p *schedule.Request, s string) { p.Category = s }, 0, MaxCategory),
		"A label of your choice, at most 64 printable bytes.", "marketing"),
	rest.Row("send_at", rest.Optional, rest.Moment(func(p *schedule.Request, t time.Time) { p.SendAt = t }),
		"The send time, with a zone. A fraction of a second is rounded up. Default: now.", "2026-12-01T09:00:00+01:00"),
	rest.Row("local_time", rest.Optional, rest.LocalMoment(func(p *schedule.Request, t time.Time) { p.LocalTime = t }),
		"The send time on the clocks of time_zone, instead of send_at. A time that the clocks skip in spring means the first instant after the gap; a time that occurs twice in autumn means the first. Seconds are optional.", rest.LocalExample),
	rest.Row("time_zone", rest.Optional, rest.Text(func(p *schedule.Request, s string) { p.TimeZone = s }, 0, MaxZone),
		"The zone of local_time, an IANA name. Default: the recipient's zone, or else the default zone of the policy.", "Asia/Tokyo"),
	rest.Row("to", rest.Optional, rest.Text(func(p *schedule.Request, s string) { p.To = s }, 0, MaxTo),
		"The address, if the channel needs one: a telephone number in E.164 form, an e-mail address, which may have a name, a registration or device token.", "+4512345678"),
	rest.Row("expires_at", rest.Optional, rest.Moment(func(p *schedule.Request, t time.Time) { p.ExpiresAt = t }),
		"The push is not sent at or after this time. Default: 24 hours, or as configured, after its send time.", "2026-12-01T12:00:00Z"),
	rest.Row("on_conflict", rest.Optional, rest.OneOf(func(p *schedule.Request, s string) { p.Defer = s == "defer" }, "reject", "defer").Or("reject"),
		"The action if the quota has no place at send_at: reject, or defer to the next free time.", nil),
	rest.Row("latest", rest.Optional, rest.Moment(func(p *schedule.Request, t time.Time) { p.Latest = t }),
		"The latest time to defer to.", "2026-12-02T09:00:00Z"),
	rest.Row("metadata", rest.Optional, rest.AnyObject(func(p *schedule.Request, raw []byte) { p.Metadata = raw }),
		"Your own data; it is returned with the push.", map[string]any{"campaign": "x"}),
}}

var exampleRequest = json.RawMessage(`{"recipient": "user-42", "channel": "push", "category": "marketing", "send_at": "2026-12-01T09:00:00+01:00",
	"message": {"title": "Sale", "body": "Everything must go.", "data": {"any": "json"}}, "to": "+4512345678",
	"expires_at": "2026-12-01T12:00:00Z", "on_conflict": "reject", "latest": "2026-12-02T09:00:00Z", "metadata": {"campaign": "x"}}`)

// MessageFields is the message of a push: the members that every channel expects as texts.
var MessageFields = rest.Table[struct{}]{SchemaName: "Message", Open: true, Fields: []rest.Field[struct{}]{
	rest.Row("title", rest.Optional, rest.AnyText(), "The title of a notification; the subject of an e-mail. Not sent by SMS.", "Sale"),
	rest.Row("body", rest.Optional, rest.AnyText(), "The text.", "Everything must go."),
	rest.Row("html", rest.Optional, rest.Anything(), "For e-mail: the text in HTML, a string, in addition to body or instead of it.", nil),
	rest.Row("aps", rest.Optional, rest.Anything(), "For APNs: members to add to aps, for example sound and badge.", nil),
	rest.Row("headers", rest.Optional, rest.Anything(), "For e-mail: an object from names of headers to their values, at most 50. Headers that the channel or a mail server writes, such as From, Bcc and List-Unsubscribe, are refused.", nil),
	rest.Row("cc", rest.Optional, rest.Anything(), "For e-mail: an address or a list of addresses that get a copy, at most 50 with those of bcc. Copies use no quota. If the mail server refuses one of them, the others get the mail.", nil),
	rest.Row("bcc", rest.Optional, rest.Anything(), "For e-mail: an address or a list of addresses that get a copy and are not shown to the others.", nil),
	rest.Row("reply_to", rest.Optional, rest.Anything(), "For e-mail: an address or a list of addresses for replies, at most 10, instead of the channel's.", nil),
	rest.Row("from", rest.Optional, rest.Anything(), "For e-mail: the sender, one of the addresses in the channel's allowed_from.", nil),
	rest.Row("attachments", rest.Optional, rest.Anything(), "For e-mail: a list of at most 20 objects with name (of a file, without a folder), type (a media type; default: application/octet-stream) and content (in base64), at most 2 MiB together when decoded.", nil),
	rest.Row("data", rest.Optional, rest.Anything(), "Any JSON. For FCM and APNs, an object: its members are for the app.", nil),
}}

// checkPush adds errors that concern several members.
func checkPush(p *schedule.Request, errs *rest.FieldErrors) {
	checkWhen(p, errs)
	CheckTemplate(p, errs)
}

// CheckTemplate rejects variables without a template.
func CheckTemplate(p *schedule.Request, errs *rest.FieldErrors) {
	if p.Variables != nil && !p.Template && !errs.Has("template") {
		errs.Add("variables", "must not be given without template", errs.AsWritten(invalid.FieldError{Field: "variables", Value: ""}))
	}
}

// checkWhen adds errors that concern several members of the send time.
func checkWhen(p *schedule.Request, errs *rest.FieldErrors) {
	switch {
	case !p.LocalTime.IsZero() && !p.SendAt.IsZero():
		errs.Add("local_time", "must not be given together with send_at", errs.AsWritten(invalid.FieldError{Field: "local_time", Value: ""}))
	case p.TimeZone != "" && p.LocalTime.IsZero() && !errs.Has("local_time"):
		errs.Add("time_zone", "must not be given without local_time", rest.Shown(p.TimeZone))
	}
}
