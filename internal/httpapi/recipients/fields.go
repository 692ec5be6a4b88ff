package recipients

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// description is the description of a recipient in a request.
type description struct{ booking.Description }

// descriptionFields are the members of a description. The answer of GET can be sent back, and null is like an absent member.
var descriptionFields = []rest.Field[description]{
	rest.Row("time_zone", rest.Optional, rest.Text(func(d *description, s string) { d.TimeZone = s }, 0, pushes.MaxZone).OrNull(func(d *description) { d.TimeZone = "" }),
		"An IANA name. Default: the default zone of the policy.", "Asia/Tokyo"),
	rest.Row("addresses", rest.Optional, addresses().OrNull(func(d *description) { d.Addresses = nil }), "The recipient's addresses, by the name of the channel. A push without `to` is sent to the address of its channel.",
		map[string]string{"sms": "+819012345678", "email": "aiko@example.com"}),
	rest.Row("opt_outs", rest.Optional, rest.Object(&optOutFields, func(d *description) *booking.OptOuts { return &d.OptOuts }).OrNull(func(d *description) { d.OptOuts = booking.OptOuts{} }),
		"The recipient's opt-outs.", nil),
	rest.Row("limits", rest.Optional, rest.Array(0, booking.MaxOwnLimits, ownLimitFields.Schema, (*description).readLimit).OrNull(func(d *description) { d.Limits, d.LimitOrder = nil, nil }),
		"The recipient's own limits, which replace the limits of the named rules. An entry for an unknown rule has no effect until the rule exists.", nil),
	rest.Row("attributes", rest.Optional, attributes().OrNull(func(d *description) { d.Attributes = nil }), "Your own data about the recipient, at most 16 KiB.",
		map[string]any{"first_name": "Aiko", "plan": "gold"}),
	rest.Row("created_at", rest.Optional, rest.Ignored[description](), "Ignored, so that the answer of GET can be sent back.", nil),
	rest.Row("updated_at", rest.Optional, rest.Ignored[description](), "Ignored, too.", nil),
}

// recipientFields is the body of PUT.
var recipientFields = rest.Table[description]{SchemaName: "NewRecipient", Fields: append([]rest.Field[description]{
	rest.Row("recipient", rest.Optional, rest.Text(func(d *description, s string) { d.Recipient = s }, 1, pushes.MaxRecipient), "If given, the recipient of the path.", "user-42"),
}, descriptionFields...)}

var optOutFields = rest.Table[booking.OptOuts]{SchemaName: "NewOptOuts", Fields: []rest.Field[booking.OptOuts]{
	rest.Row("all", rest.Optional, rest.Boolean(func(o *booking.OptOuts, v bool) { o.All = v }).Or("false"), "Opts out of everything.", nil),
	rest.Row("channels", rest.Optional, different(func(o *booking.OptOuts) *[]string { return &o.Channels }, pushes.MaxChannel), "Opts out of these channels.", []string{"sms"}),
	rest.Row("categories", rest.Optional, different(func(o *booking.OptOuts) *[]string { return &o.Categories }, pushes.MaxCategory), "Opts out of these categories.", []string{"marketing"}),
}}

// ownLimit is a recipient's own limit.
type ownLimit struct {
	Rule  string `json:"rule"`
	Limit int    `json:"limit"`
}

// ruleShape is the pattern of the names of rules.
const ruleShape = `^[a-z0-9_-]{1,64}$`

var ruleName = regexp.MustCompile(ruleShape)

const wrongRule = "must be the name of a rule: 1 to 64 of a-z, 0-9, - and _"

var ownLimitFields = rest.Table[ownLimit]{SchemaName: "NewOwnLimit", Fields: []rest.Field[ownLimit]{
	rest.Row("rule", rest.Required, rest.Scalar(func(l *ownLimit, s string) { l.Rule = s }, huma.Schema{Type: huma.TypeString, Pattern: ruleShape}, func(text string) (string, string) {
		name := quota.Name(text)
		if !ruleName.MatchString(name) {
			return "", wrongRule
		}
		return name, ""
	}), "", "per-day"),
	rest.Row("limit", rest.Required, rest.Integer(func(l *ownLimit, n int) { l.Limit = n }, 0, booking.MaxLimit), "0 blocks.", 20),
}}

func (d *description) readLimit(r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
	var (
		l     ownLimit
		found rest.FieldErrors
	)
	if i == 0 {
		d.Limits, d.LimitOrder = nil, nil
	}
	ownLimitFields.Read(r, &l, &found)
	if _, twice := d.Limits[l.Rule]; twice && l.Rule != "" {
		found.Add("rule", "must not be given twice", rest.Shown(l.Rule))
	}
	if d.Limits == nil {
		d.Limits = map[string]int{}
	}
	if _, twice := d.Limits[l.Rule]; !twice {
		d.LimitOrder = append(d.LimitOrder, l.Rule)
	}
	d.Limits[l.Rule] = l.Limit
	errs.AddAll(rest.Item(name, i), found)
}

// different reads an array of different names.
func different[T any](of func(*T) *[]string, most int) rest.Value[T] {
	one := rest.Named(func(to *string, s string) { *to = s }, 1, most)
	return rest.Array(0, booking.MaxOptOuts, one.Describe, func(to *T, r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
		var s string
		raw, list := r.Value(), of(to)
		if r.Err != nil {
			return
		}
		if i == 0 {
			*list = nil
		}
		if wrong := one.ReadJSON(raw, &s, "", nil); wrong != "" {
			errs.AddJSON(rest.Item(name, i), wrong, raw)
		} else if slices.Contains(*list, s) {
			errs.AddJSON(rest.Item(name, i), "must not be given twice", raw)
		}
		*list = append(*list, s)
	}).Unique()
}

// addresses reads an object of texts by the names of channels.
func addresses() rest.Value[description] {
	one := rest.Text(func(to *string, s string) { *to = s }, 1, pushes.MaxTo)
	return rest.Value[description]{
		Describe: func(s *rest.Spec) *huma.Schema {
			return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: one.Describe(s)}
		},
		JSON: func(to *description, raw []byte, name string, errs *rest.FieldErrors) string {
			if raw[0] != '{' {
				return "must be an object"
			}
			to.Addresses = map[string]string{}
			rest.ReadAgain(raw, func(r *rest.Reader) {
				for channel := range r.Members {
					var address string
					channel := quota.Name(string(channel))
					value := r.Value()
					wrong := one.ReadJSON(value, &address, "", nil)
					if _, twice := to.Addresses[channel]; twice && wrong == "" {
						wrong = "must not be given twice"
					}
					if wrong != "" {
						errs.AddJSON(rest.Under(name, rest.Short([]byte(channel))), wrong, value)
						continue
					}
					to.Addresses[channel] = address
				}
			})
			if n := len(to.Addresses); n > booking.MaxAddresses {
				return fmt.Sprintf("must have at most %d members, has %d", booking.MaxAddresses, n)
			}
			return ""
		},
	}
}

// attributes reads an object that Postgres can store.
func attributes() rest.Value[description] {
	v := rest.AnyObject(func(d *description, raw []byte) { d.Attributes = slices.Clone(raw) })
	accept := v.JSON
	v.JSON = func(to *description, raw []byte, name string, errs *rest.FieldErrors) string {
		wrong := accept(to, raw, name, errs)
		switch {
		case wrong != "":
		case len(raw) > booking.MaxAttributes:
			wrong = fmt.Sprintf("must have at most %d bytes, has %d", booking.MaxAttributes, len(raw))
		default:
			wrong = unkeepable(raw)
		}
		if wrong != "" {
			to.Attributes = nil
		}
		return wrong
	}
	return v
}

// unkeepable returns an error for a JSON text that Postgres cannot store, or "".
func unkeepable(raw []byte) string {
	d := jsontext.NewDecoder(strings.NewReader(string(raw)), rest.Lenient)
	for {
		t, err := d.ReadToken()
		if err != nil {
			return "" // the end: the text was read before
		}
		switch t.Kind() {
		case '"':
			if s, err := jsontext.AppendUnquote(nil, quotedBefore(raw, d)); err == nil && strings.Contains(string(s), "\x00") {
				return "must have no text with the character U+0000"
			}
		case '0':
			if text := t.String(); !keepable(text) {
				return "must have no number like " + rest.Short([]byte(text))
			}
		}
	}
}

// quotedBefore returns the text of the string that a decoder has just read.
func quotedBefore(raw []byte, d *jsontext.Decoder) []byte {
	end := int(d.InputOffset())
	for from := end - 2; from >= 0; from-- {
		if raw[from] != '"' {
			continue
		}
		slashes := 0
		for slashes < from && raw[from-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return raw[from:end]
		}
	}
	return nil
}

// keepable reports whether Postgres stores a number unchanged.
func keepable(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	if errors.Is(err, strconv.ErrRange) {
		return false
	}
	at := strings.IndexAny(number, "eE")
	if at < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[at+1:])
	return err == nil && exponent > -400 && exponent < 400
}

// ownLimits lists the limits of a recipient in their order.
func ownLimits(d *booking.Description) []ownLimit {
	all := make([]ownLimit, 0, len(d.Limits))
	for _, rule := range d.LimitNames() {
		all = append(all, ownLimit{rule, d.Limits[rule]})
	}
	return all
}

// orEmpty returns an object, or an empty one for nil.
func orEmpty(object json.RawMessage) json.RawMessage {
	if object == nil {
		return json.RawMessage(`{}`)
	}
	return object
}
