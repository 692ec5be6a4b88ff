package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
)

// maxColumns is how many columns an audience may have, and how many members a line of it.
const maxColumns = 500

// audienceMemory is for what is stored at once, and for the answer.
const audienceMemory = 8 << 20

const audienceColumns = "the column recipient is needed; to is the address, and every other column a variable"

// audienceView is what became of an audience.
type audienceView struct {
	Rows       int         `json:"rows" doc:"Lines but for the header and empty ones: accepted, duplicates and rejected."`
	Accepted   int64       `json:"accepted" doc:"Recipients of the campaign."`
	Duplicates int64       `json:"duplicates" doc:"Lines of recipients who came before: the first line stays."`
	Rejected   int         `json:"rejected"`
	Errors     []lineFault `json:"errors" doc:"Those of the first hundred rejected lines."`
}

// audience is the audience of a campaign on its way.
type audience struct {
	*lineFile
	upload  *campaign.Upload
	comma   byte
	columns []audienceColumn // of CSV
}

// audienceColumn is a column of CSV.
type audienceColumn struct {
	name   string
	member []byte // the name in JSON; nil: it is no variable
}

// putAudience reads the audience of a draft. It takes the place of the former one when all of it is there.
func (a *api) putAudience(c *call) error {
	csv, err := importMedia(c.r.Header)
	if err != nil {
		return err
	}
	if err := c.ready(audienceMemory); err != nil {
		return err
	}
	upload, err := a.cfg.Campaigns.Upload(c.r.Context(), c.caller.Tenant, c.id)
	if err != nil {
		c.drain(maxDrained)
		return noSuch("campaign", err)
	}
	x := &audience{lineFile: openLines(c, csv, "the campaign keeps the audience that it has"), upload: upload}
	if err := x.read(); err != nil {
		upload.Drop()
		c.drain(maxDrained)
		if _, ok := errors.AsType[*campaign.TooLargeError](err); ok {
			c.bad.add("body", err.Error(), nil)
			return c.bad.err()
		}
		return noSuch("campaign", err)
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(importAnswerTime)) // without deadlines there is no server, but a test
	return a.answer(c.w, http.StatusOK, audienceView{Rows: x.rows, Accepted: upload.Accepted, Duplicates: upload.Duplicates, Rejected: x.rejected, Errors: x.faults})
}

// read reads all lines.
func (x *audience) read() error {
	if x.csv {
		if err := x.readHeader(); err != nil {
			return err
		}
	}
	for {
		err := x.line()
		if errors.Is(err, io.EOF) {
			_, err := x.upload.End(x.ctx)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// readHeader reads the names of the columns, or says all that is wrong with them. A column without a name is left out.
func (x *audience) readHeader() error {
	var bad fieldErrors
	line, err := x.header(audienceColumns, &bad)
	if err != nil {
		return err
	}
	if err := bad.err(); err != nil {
		return err
	}
	x.comma = separator(line)
	names, err := splitRecord(line, x.comma)
	if err != nil {
		bad.add("body.header", err.Error(), shown(line))
		return bad.err()
	}
	if len(names) > maxColumns {
		bad.add("body.header", fmt.Sprintf("must have at most %d columns, has %d", maxColumns, len(names)), nil)
		return bad.err()
	}
	seen := map[string]bool{}
	for i, name := range names {
		name = strings.TrimSpace(name)
		column := audienceColumn{name: name}
		switch {
		case strings.Contains(name, "\x00"):
			bad.add(item("body.header", i), noNUL, shown(name))
		case seen[name]:
			bad.add(item("body.header", i), "must not name a column twice", shown(name))
		case name != "" && name != "recipient" && name != "to":
			column.member, _ = jsontext.AppendQuote(nil, name) // it is valid UTF-8
		}
		seen[name] = name != ""
		x.columns = append(x.columns, column)
	}
	if !seen["recipient"] {
		bad.add("body.header", "must have the column recipient, in small letters", shown(line))
	}
	return bad.err()
}

const noNUL = "must not have the character U+0000"

// line reads a line.
func (x *audience) line() error {
	var (
		found fieldErrors
		l     push.CampaignLine
	)
	text, number, err := x.record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	l.Line = number
	switch {
	case len(found.list) > 0:
	case x.csv:
		x.cells(string(text), &l, &found)
	default:
		readAgain(text, func(r *reader) { readAudienceLine(r, &l, &found) })
	}
	if len(found.list) > 0 {
		x.reject(number, text, found)
		return nil
	}
	return x.upload.Add(x.ctx, l, len(text))
}

// cells reads a line of CSV.
func (x *audience) cells(text string, l *push.CampaignLine, found *fieldErrors) {
	cells, err := splitRecord(text, x.comma)
	if err != nil {
		found.add("", err.Error(), nil)
		return
	}
	if len(cells) != len(x.columns) {
		found.add("", unevenCells(len(cells), len(x.columns)), nil)
		return
	}
	var variables []byte
	for i, column := range x.columns {
		cell := strings.TrimSpace(cells[i])
		switch {
		case column.name == "recipient":
			takeText(&l.Recipient, cell, "recipient", 1, maxRecipient, found)
		case column.name == "to":
			if takeText(&l.To, cell, "to", 0, maxTo, found); cell == "" {
				variables = append(appendMember(variables, toMember), emptyText...)
			}
		case strings.Contains(cell, "\x00"):
			found.add(column.name, noNUL, nil)
		case column.member != nil:
			variables = append(appendMember(variables, column.member), ':')
			variables, _ = jsontext.AppendQuote(variables, cell) // it is valid UTF-8
		}
	}
	l.Variables = closeObject(variables)
}

// An empty address is kept as a variable, so that templates can tell it from a line without one. In JSON, null is no address.
var (
	toMember  = []byte(`"to"`)
	emptyText = []byte(`:""`)
)

// takeText is a cell, or a member, that is no variable.
func takeText(to *string, text, name string, least, most int, found *fieldErrors) {
	if wrong := unfit(text, least, most); wrong != "" {
		found.add(name, wrong, nil)
	}
	*to = text
}

// appendMember adds the name of a member to an object, which it opens.
func appendMember(object, name []byte) []byte {
	if object == nil {
		return append(append(object, '{'), name...)
	}
	return append(append(object, ','), name...)
}

func closeObject(object []byte) []byte {
	if object == nil {
		return nil
	}
	return append(object, '}')
}

// readAudienceLine reads a line of NDJSON.
func readAudienceLine(r *reader, l *push.CampaignLine, found *fieldErrors) {
	if r.peek() != '{' {
		if raw := r.value(); r.err == nil {
			found.addJSON("", "must be an object", raw)
		}
	} else {
		readAudienceMembers(r, l, found)
	}
	if r.end(); r.err != nil {
		found.add("", r.err.Error(), nil)
	}
}

func readAudienceMembers(r *reader, l *push.CampaignLine, found *fieldErrors) {
	var (
		variables []byte
		has       bool
		n         = 0
	)
	for name := range r.members {
		n++
		member := string(name)
		raw := r.value()
		if r.err != nil || n > maxColumns {
			continue
		}
		text, ok := "", true
		if raw[0] == '"' {
			text, ok = unquote(raw)
		}
		switch own := member == "recipient" || member == "to"; {
		case raw[0] == '{' || raw[0] == '[':
			found.add(short([]byte(member)), "must be a string, a number, true, false or null", nil)
		case !ok:
			found.add(short([]byte(member)), "must be valid Unicode: it has half of a surrogate pair", nil)
		case strings.Contains(text, "\x00"):
			found.add(short([]byte(member)), noNUL, nil)
		case own && raw[0] != '"' && !(member == "to" && string(raw) == "null"):
			found.add(member, "must be a string", nil)
		case member == "recipient":
			has = true
			takeText(&l.Recipient, text, member, 1, maxRecipient, found)
		case member == "to":
			if takeText(&l.To, text, member, 0, maxTo, found); string(raw) == `""` {
				variables = append(appendMember(variables, toMember), emptyText...)
			}
		default:
			quoted, err := jsontext.AppendQuote(nil, member)
			if err != nil {
				found.add(short([]byte(member)), "must be valid Unicode: it has half of a surrogate pair", nil)
				continue
			}
			variables = append(append(appendMember(variables, quoted), ':'), raw...)
		}
	}
	if n > maxColumns {
		found.add("", fmt.Sprintf("must have at most %d members, has %d", maxColumns, n), nil)
	}
	if r.err == nil && !has && !found.has("recipient") {
		found.add("recipient", "is required", nil)
	}
	l.Variables = closeObject(variables)
}
