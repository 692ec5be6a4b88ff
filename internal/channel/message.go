package channel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// message is the members of a push's message, by exact name. It is empty if the message is no JSON object.
type message map[string]json.RawMessage

func open(raw json.RawMessage) message {
	var m message
	_ = json.Unmarshal(raw, &m)
	return m
}

// text returns a member that is a string, or else "".
func (m message) text(name string) string {
	var s string
	_ = json.Unmarshal(m[name], &s)
	return s
}

// object returns a member that is an object, and whether it is one or absent.
func (m message) object(name string) (message, bool) {
	if m[name] == nil || string(m[name]) == "null" {
		return nil, true
	}
	o := open(m[name])
	return o, o != nil
}

// alert returns the title and the body, without empty ones.
func (m message) alert() map[string]string {
	alert := map[string]string{}
	for _, name := range []string{"title", "body"} {
		if text := m.text(name); text != "" {
			alert[name] = text
		}
	}
	return alert
}

// unfit refuses a push that was booked for another channel, or by other rules, before anything of it reaches a
// provider, because its address may become part of a path or a header.
func unfit(c Channel, p push.Push) (Result, bool) {
	faults := c.Check(p.To, p.Message)
	if len(faults) == 0 {
		return Result{}, false
	}
	return misfit(faults), true
}

// misfit returns the result of a push with faults. Its text has no values of them.
func misfit(faults invalid.FieldErrors) Result {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Field + " " + f.Message
	}
	return Result{Outcome: push.Refused, Final: true, Error: outbound.Printable("not sent: "+strings.Join(texts, "; "), maxError)}
}

// wrongAddress returns the fault of an address that is missing or of another form.
func wrongAddress(to, form string) invalid.FieldError {
	f := invalid.FieldError{Field: "to", Message: "must be " + form}
	if to != "" {
		f.Value = to
	}
	return f
}

// tooLong returns the fault of a message beyond a provider's limit.
func tooLong(field string, most, has int, unit string) invalid.FieldError {
	return invalid.FieldError{Field: field, Message: fmt.Sprintf("must have at most %d %s, has %d", most, unit, has)}
}

// encodeJSON is json.Marshal without escaping HTML.
func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
