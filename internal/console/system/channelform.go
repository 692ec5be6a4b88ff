package system

import (
	"context"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/ownchannels"
)

// The form of a channel is made from the table of its settings, which also checks a channel, and describes it in the API.

// channelForm is the form of a channel of one type.
type channelForm struct {
	Type   string
	Fields []channelField // of the type
	More   []channelGroup // of all types
}

// channelGroup is a section of settings.
type channelGroup struct {
	Legend, Hint string
	Fields       []channelField
}

// channelField is a field of the form.
type channelField struct {
	Name        string // of the member, such as throughput.rate
	Label, Hint string
	Placeholder string
	Input       string // text, number, password, area, select or checkbox
	List        bool   // the value has a line for each element
	Words       []string
	Must        bool // the channel needs it
	Required    bool // the form needs it
	Secret      bool
	Least, Most int
	Default     string
	Value       string
	SetAt       time.Time // of a stored secret
}

// hiddenMembers are not in the form: it has buttons for them.
var hiddenMembers = []string{"type", "disabled"}

// formOf returns the empty form of a type; false: the operator allows no channel of that type.
func formOf(of string, bounds client.TenantChannels) (f channelForm, ok bool) {
	types := ownchannels.ChannelTypes()
	i := slices.IndexFunc(types, func(t ownchannels.ChannelType) bool { return t.Type == of })
	if i < 0 || !slices.Contains(bounds.Types, of) {
		return f, false
	}
	f.Type = of
	plain := channelGroup{}
	for _, m := range types[i].Members {
		section, _, inner := strings.Cut(m.Name, ".")
		switch {
		case slices.Contains(hiddenMembers, m.Name), m.Name == "allow_private_addresses" && !bounds.AllowPrivateAddresses:
		case m.Name == "throughput.unit" && of != "sms":
		case m.Form.Kind == "":
			f.More = append(f.More, channelGroup{Legend: labelOf(m.Name), Hint: sentence(m.Meaning, f.labels())})
		case inner && section != "":
			last := &f.More[len(f.More)-1]
			last.Fields = append(last.Fields, fieldOf(m))
		case m.Case == of:
			f.Fields = append(f.Fields, fieldOf(m))
		default:
			plain.Fields = append(plain.Fields, fieldOf(m))
		}
	}
	f.More = append([]channelGroup{plain}, f.More...)
	labels := f.labels()
	f.each(func(c *channelField) { c.Hint = sentence(c.Hint, labels) })
	return f, true
}

// each calls do for every field.
func (f *channelForm) each(do func(*channelField)) {
	for i := range f.Fields {
		do(&f.Fields[i])
	}
	for g := range f.More {
		for i := range f.More[g].Fields {
			do(&f.More[g].Fields[i])
		}
	}
}

// fieldOf makes a field from a setting.
func fieldOf(m ownchannels.Member) channelField {
	name := m.Name[strings.LastIndex(m.Name, ".")+1:]
	c := channelField{Name: m.Name, Label: labelOf(name), Hint: m.Meaning, Placeholder: m.Form.Example, Input: "text", Words: m.Form.Words, Least: m.Form.Least, Most: m.Form.Most}
	if c.Must = m.Default == ownchannels.RequiredMember; !c.Must {
		c.Default = m.Default
	}
	c.Required = c.Must && name == m.Name
	switch m.Form.Kind {
	case ownchannels.KindSecret:
		c.Secret = true
		switch {
		case slices.Contains([]string{"key", "credentials"}, name):
			c.Input = "area"
		case strings.Contains(name, "secret") || strings.Contains(name, "token") || name == "password":
			c.Input = "password"
		}
	case ownchannels.KindWord:
		c.Input = "select"
	case ownchannels.KindBoolean:
		c.Input = "checkbox"
	case ownchannels.KindInteger:
		c.Input = "number"
	case ownchannels.KindList:
		c.Input, c.List = "area", true
		c.Hint += "; one in each line"
	case ownchannels.KindDuration:
		c.Hint += "; such as 500ms, 90s or 15m"
	}
	if c.Placeholder == "" && !strings.ContainsAny(c.Default, "{}") {
		c.Placeholder = c.Default
	}
	return c
}

// abbreviations are written in capitals.
var abbreviations = strings.NewReplacer(" sid", " SID", " id", " ID", " url", " URL", "tls", "TLS", "url", "URL", "api ", "API ", "reply to", "reply-to")

var memberName = regexp.MustCompile(`[a-z]+(_[a-z]+)+`)

// fill shows a stored channel in the form. A value that equals the default is left out, so that it stays the default.
func (f *channelForm) fill(members map[string]any) {
	f.each(func(c *channelField) {
		value := memberAt(members, c.Name)
		if mask, is := value.(map[string]any); is && c.Secret {
			at, _ := mask["set_at"].(string)
			c.SetAt, _ = time.Parse(time.RFC3339, at)
			c.Required = false
			return
		}
		if value == nil {
			if c.Input == "checkbox" {
				c.Value = "on"
			}
			return
		}
		text, _ := value.(string)
		if list, is := value.([]any); is && c.List {
			text = lines(list)
		} else if text == "" {
			plain, _ := json.Marshal(value) // a number or a boolean
			text = string(plain)
		}
		switch {
		case c.Input == "checkbox":
			c.Value = map[bool]string{true: "on"}[text == "true"]
		case text != c.Default || c.Input == "select":
			c.Value = text
		}
	})
}

// lines returns the elements of a list, one in each line.
func lines(list []any) string {
	var all []string
	for _, one := range list {
		text, _ := one.(string)
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

// memberAt returns a member of an object, or of an object in it.
func memberAt(members map[string]any, name string) any {
	section, inner, deep := strings.Cut(name, ".")
	if !deep {
		return members[name]
	}
	of, _ := members[section].(map[string]any)
	return of[inner]
}

// take shows what was typed, except secrets.
func (f *channelForm) take(form url.Values) {
	f.each(func(c *channelField) {
		if !c.Secret {
			c.Value = form.Get(c.Name)
		}
	})
}

// read returns the members that the form sets.
func (f *channelForm) read(form url.Values) client.ChannelSettings {
	members := client.ChannelSettings{"type": f.Type}
	f.each(func(c *channelField) {
		typed := form.Get(c.Name)
		if c.Input != "password" {
			typed = strings.TrimSpace(typed)
		}
		var value any = typed
		switch {
		case c.Secret && typed == "" && form.Get("remove."+c.Name) != "":
			value = nil
		case c.Input == "checkbox" && typed == "":
			value = false
		case typed == "", c.Input == "checkbox", typed == c.Default && !c.Secret:
			return
		case c.List:
			value = strings.FieldsFunc(typed, func(r rune) bool { return r == '\n' || r == '\r' })
		case c.Input == "number":
			if n, err := strconv.ParseInt(typed, 10, 64); err == nil {
				value = n
			}
		}
		section, inner, deep := strings.Cut(c.Name, ".")
		if !deep {
			members[c.Name] = value
			return
		}
		of, known := members[section].(map[string]any)
		if !known {
			of = map[string]any{}
			members[section] = of
		}
		of[inner] = value
	})
	return members
}

// MoreHas reports whether the folded part of the form has an error, or a value of its own.
func (f *channelForm) MoreHas(p *frame.Page) (has bool) {
	for _, g := range f.More {
		for _, c := range g.Fields {
			has = has || p.Fault(c.Name) != "" || c.Value != "" && c.Input != "checkbox" && c.Value != c.Default
		}
	}
	return has
}

// context returns a context for a call with the members, which is listed without the secrets.
func (f *channelForm) context(p *frame.Page, members client.ChannelSettings) context.Context {
	return frame.WithShownBody(p.Context(), f.shown(members))
}

// shown returns the members with placeholders instead of secrets, for the list of calls.
func (f *channelForm) shown(members client.ChannelSettings) string {
	safe := client.ChannelSettings{}
	for name, value := range members {
		safe[name] = value
	}
	f.each(func(c *channelField) {
		if text, _ := safe[c.Name].(string); c.Secret && text != "" {
			safe[c.Name] = "YOUR_" + strings.ToUpper(c.Name)
		}
	})
	text, err := json.Marshal(safe)
	if err != nil {
		return ""
	}
	return string(text)
}
