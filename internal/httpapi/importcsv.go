package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/booking"
)

// importColumns are those that a header may have.
const importColumns = "recipient, time_zone, address.<channel>, opt_out_all, opt_out_channels, opt_out_categories, limit.<rule>, attribute.<name>"

// csvReader reads recipients from lines of CSV.
type csvReader struct {
	comma   byte
	names   []string // of the columns
	columns []csvColumn
	keep    booking.Members // that no column names
}

// csvColumn sets what a cell says. It is not asked about an empty one, but for that of the recipient.
type csvColumn func(d *description, cell string) (wrong string)

// header reads the columns, or says all that is wrong with them.
func (x *csvReader) header(line string, channels []string, bad *fieldErrors) {
	x.comma = separator(line)
	names, err := splitRecord(line, x.comma)
	if err != nil {
		bad.add("body.header", err.Error(), shown(line))
		return
	}
	seen := map[string]bool{}
	x.keep = booking.AllMembers
	for i, name := range names {
		name = strings.TrimSpace(name)
		column, named, wrong := csvColumnOf(name, channels)
		switch {
		case wrong != "":
			bad.add(item("body.header", i), wrong, shown(name))
		case seen[name]:
			bad.add(item("body.header", i), "must not name a column twice", shown(name))
		}
		seen[name] = true
		x.names, x.columns, x.keep = append(x.names, name), append(x.columns, column), x.keep&^named
	}
	if !seen["recipient"] {
		bad.add("body.header", "must have the column recipient; the columns are: "+importColumns, nil)
	}
}

// separator is what stands between the columns: what the header has most of outside of quotation marks.
func separator(header string) byte {
	best, most, quoted := byte(','), 0, false
	for _, c := range []byte{',', ';', '\t'} {
		n := 0
		for i := range len(header) {
			switch header[i] {
			case '"':
				quoted = !quoted
			case c:
				if !quoted {
					n++
				}
			}
		}
		if quoted = false; n > most {
			best, most = c, n
		}
	}
	return best
}

// csvColumnOf is the column of a name, and which member of a description it is about.
func csvColumnOf(name string, channels []string) (column csvColumn, of booking.Members, wrong string) {
	kind, rest, _ := strings.Cut(name, ".")
	switch {
	case name == "recipient":
		return csvRecipient, 0, ""
	case name == "time_zone":
		return func(d *description, cell string) string { d.TimeZone = cell; return unfit(cell, 0, maxZone) }, booking.TimeZone, ""
	case name == "opt_out_all":
		return csvOptOutAll, booking.OptOutAll, ""
	case name == "opt_out_channels":
		return csvWords(func(d *description) *[]string { return &d.OptOuts.Channels }, maxChannel), booking.OptOutChannels, ""
	case name == "opt_out_categories":
		return csvWords(func(d *description) *[]string { return &d.OptOuts.Categories }, maxCategory), booking.OptOutCategories, ""
	case kind == "address" && slices.Contains(channels, rest):
		return csvAddress(rest), booking.Addresses, ""
	case kind == "address":
		return nil, 0, "unknown channel; the channels are: " + strings.Join(channels, ", ")
	case kind == "limit" && ruleName.MatchString(rest):
		return csvLimit(rest), booking.Limits, ""
	case kind == "limit":
		return nil, 0, wrongRule + ", behind limit."
	case kind == "attribute" && unfit(rest, 1, 64) == "":
		return func(d *description, cell string) string { return csvAttribute(d, rest, cell) }, booking.Attributes, ""
	}
	return nil, 0, "unknown column; the columns are: " + importColumns
}

// columnOf is the name of the column that a member of a description comes from.
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
	if wrong := unfit(cell, 1, maxRecipient); wrong != "" {
		return wrong
	}
	return ""
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
		for word := range strings.FieldsSeq(cell) {
			if wrong := unfit(word, 1, most); wrong != "" {
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

func csvAddress(channel string) csvColumn {
	return func(d *description, cell string) string {
		if d.Addresses == nil {
			d.Addresses = map[string]string{}
		}
		d.Addresses[channel] = cell
		return unfit(cell, 1, maxTo)
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
	value, _ := json.Marshal(cell) // texts always have a form
	text = append(append(append(append(text, key...), ':'), value...), '}')
	if len(text) > booking.MaxAttributes {
		return fmt.Sprintf("is too much: the attributes may have %d bytes", booking.MaxAttributes)
	}
	d.Attributes = text
	return ""
}

// whole reports whether several lines are a record: it has the cells of the header, and line breaks only where one means
// something.
func (x *csvReader) whole(record []byte) bool {
	cells, err := splitRecord(string(record), x.comma)
	if err != nil || len(cells) != len(x.columns) || !utf8.Valid(record) {
		return false
	}
	for i, cell := range cells {
		if !strings.HasPrefix(x.names[i], "attribute.") && !strings.HasPrefix(x.names[i], "opt_out_c") && strings.Contains(strings.TrimSpace(cell), "\n") {
			return false
		}
	}
	return true
}

// line reads a recipient.
func (x *csvReader) line(text string, d *description, found *fieldErrors) {
	cells, err := splitRecord(text, x.comma)
	if err != nil {
		found.add("", err.Error(), nil)
		return
	}
	if len(cells) != len(x.columns) {
		found.add("", unevenCells(len(cells), len(x.columns)), nil)
		return
	}
	d.Keep = x.keep
	for i, column := range x.columns {
		cell := strings.TrimSpace(cells[i])
		if cell == "" && x.names[i] != "recipient" {
			continue
		}
		if wrong := column(d, cell); wrong != "" {
			found.add(x.names[i], wrong, shown(cell))
		}
	}
}

var (
	errQuote    = errors.New("has a quotation mark that is not closed")
	errBehind   = errors.New("has text behind a quotation mark that ends a cell")
	errEncoding = errors.New("must be valid UTF-8")
)

// splitRecord divides a line into its cells. A cell in quotation marks may have anything, and marks twice.
func splitRecord(line string, comma byte) (cells []string, err error) {
	for {
		trimmed := strings.TrimLeft(line, " ")
		if !strings.HasPrefix(trimmed, `"`) {
			cell, rest, more := strings.Cut(line, string(comma))
			if cells = append(cells, cell); !more {
				return cells, nil
			}
			line = rest
			continue
		}
		var cell strings.Builder
		for line = trimmed[1:]; ; {
			end := strings.IndexByte(line, '"')
			if end < 0 {
				return nil, errQuote
			}
			cell.WriteString(line[:end])
			if line = line[end+1:]; !strings.HasPrefix(line, `"`) {
				break
			}
			cell.WriteByte('"')
			line = line[1:]
		}
		cells = append(cells, cell.String())
		line = strings.TrimLeft(line, " ")
		switch {
		case line == "":
			return cells, nil
		case line[0] != comma:
			return nil, errBehind
		}
		line = line[1:]
	}
}

// unevenCells says that a line has more or fewer cells than the header.
func unevenCells(line, header int) string {
	if line == 1 {
		return fmt.Sprintf("has 1 cell, and the header %d", header)
	}
	return fmt.Sprintf("has %d cells, and the header %d", line, header)
}
