package strictyaml

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"
)

// Kind is the kind of a setting's value, for a form or a schema.
type Kind string

// The kinds of settings. Other settings, such as sections, have none.
const (
	KindText     Kind = "text"
	KindSecret   Kind = "secret"
	KindWord     Kind = "word" // one of Words
	KindBoolean  Kind = "boolean"
	KindInteger  Kind = "integer"  // from Least to Most
	KindDuration Kind = "duration" // such as 90s
	KindList     Kind = "list"     // of texts
)

// Form describes the value of a setting to a program that makes a form or a schema.
type Form struct {
	Kind        Kind
	Words       []string
	Least, Most int
	Example     string // of a text; empty: none
}

// Example sets an example of the last added setting, for forms and schemas.
func (t *Table) Example(text string) { t.last().form.Example = text }

// shown sets the form and the value of a field.
func (f *field) shown(form Form, value func() any) { f.form, f.value = form, value }

// Values returns the settings of a section as a JSON object, in the order of their addition: first those of the section,
// then those of the selected case. It leaves out settings without a value. show returns the value of each
// secret that is set; nil leaves it out.
func Values(settings func(*Table), show func(name string, s Secret) any) json.RawMessage {
	return newTable(settings).values(show)
}

func (t *Table) values(show func(name string, s Secret) any) json.RawMessage {
	text := []byte{'{'}
	add := func(name string, value []byte) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(append(text, '"'), name...), `":`...), value...)
	}
	fields := t.fields
	for _, v := range t.cases {
		if v.value == *t.selected {
			fields = append(fields[:len(fields):len(fields)], v.table.fields...)
		}
	}
	for _, f := range fields {
		switch {
		case f.section != nil && f.step == "":
			if f.preset != Optional || !f.section.empty() {
				add(f.name, f.section.values(show))
			}
		case f.value != nil:
			value := f.value()
			if secret, is := value.(Secret); is {
				if value = nil; secret != "" {
					value = show(f.name, secret)
				}
			}
			if value != nil && !(reflect.ValueOf(value).IsZero() && (f.preset == Optional || f.preset == Required)) {
				add(f.name, textOfValue(value))
			}
		}
	}
	return append(text, '}')
}

// empty reports whether all settings of a section are zero.
func (t *Table) empty() bool {
	for _, f := range t.fields {
		if f.value != nil && !reflect.ValueOf(f.value()).IsZero() {
			return false
		}
	}
	return true
}

func textOfValue(value any) []byte {
	if d, is := value.(time.Duration); is {
		value = spanText(d)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // texts, numbers and masks always encode
	return bytes.TrimSpace(b.Bytes())
}

// spanText returns a duration without zero minutes and seconds: 15m instead of 15m0s.
func spanText(d time.Duration) string {
	text := d.String()
	for _, zero := range []struct{ after, cut string }{{"m0s", "0s"}, {"h0m", "0m"}} {
		if len(text) > len(zero.after) && text[len(text)-len(zero.after):] == zero.after {
			text = text[:len(text)-len(zero.cut)]
		}
	}
	return text
}
