package recipients

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// importColumns lists the columns of an import.
const importColumns = "recipient, time_zone, address.<channel>, opt_out_all, opt_out_channels, opt_out_categories, limit.<rule>, attribute.<name>"

// csvReader reads recipients from the cells of CSV.
type csvReader struct {
	names   []string        // of the columns
	columns []csvColumn     // nil: the column is ignored
	keep    booking.Members // members without a column
}

// csvColumn reads a cell. It is not called for empty cells, except in the column of the recipient.
type csvColumn func(d *description, cell string) (wrong string)

// newCSVReader returns a reader for columns, and adds the errors of their names.
func newCSVReader(names, channels []string, bad *rest.FieldErrors) *csvReader {
	x := &csvReader{names: names, keep: booking.AllMembers}
	for i, name := range names {
		var (
			column csvColumn
			named  booking.Members
		)
		if name != "" && lists.WrongName(name) == "" {
			var wrong string
			if column, named, wrong = csvColumnOf(name, channels); wrong != "" {
				bad.Add(rest.Item("body.header", i), wrong, rest.Shown(name))
			}
		}
		x.columns, x.keep = append(x.columns, column), x.keep&^named
	}
	return x
}

// oneLine reports whether the cells of a column have no line breaks.
func (x *csvReader) oneLine(name string) bool {
	return name != "" && !strings.HasPrefix(name, "attribute.") && !strings.HasPrefix(name, "opt_out_c")
}

// foldedColumn returns the name of a column with the canonical name of its channel or rule. See [quota.Name].
func foldedColumn(name string) string {
	if kind, part, _ := strings.Cut(name, "."); kind == "address" || kind == "limit" {
		return kind + "." + quota.Name(part)
	}
	return name
}

// csvColumnOf returns the reader of a column, and its member of a description.
func csvColumnOf(name string, channels []string) (column csvColumn, of booking.Members, wrong string) {
	kind, part, _ := strings.Cut(name, ".")
	switch {
	case name == "recipient":
		return csvRecipient, 0, ""
	case name == "time_zone":
		return func(d *description, cell string) string {
			d.TimeZone = cell
			return rest.Unfit(cell, 0, pushes.MaxZone)
		}, booking.TimeZone, ""
	case name == "opt_out_all":
		return csvOptOutAll, booking.OptOutAll, ""
	case name == "opt_out_channels":
		return csvWords(func(d *description) *[]string { return &d.OptOuts.Channels }, pushes.MaxChannel), booking.OptOutChannels, ""
	case name == "opt_out_categories":
		return csvWords(func(d *description) *[]string { return &d.OptOuts.Categories }, pushes.MaxCategory), booking.OptOutCategories, ""
	case kind == "address" && slices.Contains(channels, part):
		return csvAddress(part), booking.Addresses, ""
	case kind == "address":
		return nil, 0, invalid.UnknownName("channel", part, channels)
	case kind == "limit" && ruleName.MatchString(part):
		return csvLimit(part), booking.Limits, ""
	case kind == "limit":
		return nil, 0, wrongRule + ", behind limit."
	case kind == "attribute" && rest.Unfit(part, 1, 64) == "":
		return func(d *description, cell string) string { return csvAttribute(d, part, cell) }, booking.Attributes, ""
	}
	return nil, 0, "unknown column; the columns are: " + importColumns
}

// columnOf returns the name of the column for a member of a description.
func columnOf(member string) string {
	if channel, ok := strings.CutPrefix(member, "addresses."); ok {
		return "address." + channel
	}
	if strings.HasPrefix(member, "opt_outs.channels[") {
		return "opt_out_channels"
	}
	return member
}

func csvRecipient(d *description, cell string) string {
	d.Recipient = cell
	return cmp.Or(rest.Unfit(cell, 1, pushes.MaxRecipient), lists.Shortened(cell))
}

func csvOptOutAll(d *description, cell string) string {
	switch strings.ToLower(cell) {
	case "true", "yes", "1":
		d.OptOuts.All = true
	case "false", "no", "0":
	default:
		return "must be true or false"
	}
	return ""
}

func csvWords(of func(*description) *[]string, most int) csvColumn {
	return func(d *description, cell string) string {
		list := of(d)
		for word := range strings.FieldsFuncSeq(cell, betweenWords) {
			word = quota.Name(word)
			if wrong := rest.Unfit(word, 1, most); wrong != "" {
				return wrong
			}
			if !slices.Contains(*list, word) {
				*list = append(*list, word)
			}
		}
		if len(*list) > booking.MaxOptOuts {
			return fmt.Sprintf("must have at most %d words, has %d", booking.MaxOptOuts, len(*list))
		}
		return ""
	}
}

// betweenWords reports whether a character separates the words of a cell.
func betweenWords(c rune) bool { return c == ',' || c == ';' || unicode.IsSpace(c) }

func csvAddress(channel string) csvColumn {
	return func(d *description, cell string) string {
		if d.Addresses == nil {
			d.Addresses = map[string]string{}
		}
		d.Addresses[channel] = cell
		return cmp.Or(rest.Unfit(cell, 1, pushes.MaxTo), lists.Shortened(cell))
	}
}

func csvLimit(rule string) csvColumn {
	return func(d *description, cell string) string {
		n, err := strconv.Atoi(cell)
		if err != nil || n < 0 || n > booking.MaxLimit {
			return fmt.Sprintf("must be a whole number from 0 to %d", booking.MaxLimit)
		}
		if d.Limits == nil {
			d.Limits = map[string]int{}
		}
		if _, twice := d.Limits[rule]; !twice {
			d.LimitOrder = append(d.LimitOrder, rule)
		}
		d.Limits[rule] = n
		if len(d.Limits) > booking.MaxOwnLimits {
			return fmt.Sprintf("is one limit too many: there may be %d", booking.MaxOwnLimits)
		}
		return ""
	}
}

// csvAttribute adds an attribute, which is a text.
func csvAttribute(d *description, name, cell string) string {
	if strings.Contains(cell, "\x00") {
		return "must not have the character U+0000"
	}
	text := append([]byte(nil), `{`...)
	if n := len(d.Attributes); n > 2 {
		text = append(append(text[:0], d.Attributes[:n-1]...), ',')
	}
	key, _ := json.Marshal(name)
	value, _ := json.Marshal(cell) // texts always have JSON
	text = append(append(append(append(text, key...), ':'), value...), '}')
	if len(text) > booking.MaxAttributes {
		return fmt.Sprintf("is too much: the attributes may have %d bytes", booking.MaxAttributes)
	}
	d.Attributes = text
	return ""
}

// line reads a recipient.
func (x *csvReader) line(cells []string, d *description, found *rest.FieldErrors) {
	d.Keep = x.keep
	for i, column := range x.columns {
		if column == nil || cells[i] == "" && x.names[i] != "recipient" {
			continue
		}
		if wrong := column(d, cells[i]); wrong != "" {
			found.Add(x.names[i], wrong, rest.Shown(cells[i]))
		}
	}
}
