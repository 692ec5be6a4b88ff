package system

import (
	"errors"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// labelOf returns the label for a member: Account SID for account_sid.
func labelOf(member string) string {
	words := abbreviations.Replace(strings.ReplaceAll(member, "_", " "))
	return strings.ToUpper(words[:1]) + words[1:]
}

// labels returns the labels of the fields by their members.
func (f *channelForm) labels() map[string]string {
	all := map[string]string{}
	f.each(func(c *channelField) {
		if strings.Contains(c.Name, "_") {
			all[c.Name] = c.Label
		}
	})
	return all
}

// withLabels replaces the names of members by the labels of their fields.
func withLabels(text string, labels map[string]string) string {
	return memberName.ReplaceAllStringFunc(text, func(name string) string {
		if label := labels[name]; label != "" {
			return label
		}
		return name
	})
}

// sentence returns a meaning of a setting as a sentence.
func sentence(meaning string, labels map[string]string) string {
	text := withLabels(meaning, labels)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// atFields puts what the API finds wrong at the fields of the form, with their labels.
func (f *channelForm) atFields(err error) error {
	var invalid *client.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	labels := f.labels()
	for i := range invalid.Errors {
		fault := &invalid.Errors[i]
		fault.Message = withLabels(fault.Message, labels)
		name, element, isElement := strings.Cut(frame.FieldOf(fault.Location), "[")
		switch {
		case name == "throughput":
			fault.Location = "throughput.rate"
		case isElement: // of a list, which is one field
			fault.Location, fault.Message = name, "line "+line(element)+": "+fault.Message
		}
	}
	return err
}

// line returns the line of an element with an index such as 0].
func line(index string) string {
	n, _ := strconv.Atoi(strings.TrimSuffix(index, "]"))
	return strconv.Itoa(n + 1)
}
