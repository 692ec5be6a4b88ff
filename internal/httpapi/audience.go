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

// audienceMemory is for what is stored at once, and for the answer.
const audienceMemory = 8 << 20

const audienceColumns = "the column recipient is needed; to is the address, and every other column a variable"

// audienceView is what became of an audience.
type audienceView struct {
	Rows       int         `json:"rows" doc:"All lines except the header and empty ones: accepted, duplicates and rejected."`
	Accepted   int64       `json:"accepted" doc:"Recipients of the campaign."`
	Duplicates int64       `json:"duplicates" doc:"Further lines of a recipient: the first line counts."`
	Rejected   int         `json:"rejected"`
	Errors     []lineFault `json:"errors" doc:"The errors of the first hundred rejected lines."`
}

// audience is the audience of a campaign on its way.
type audience struct {
	*lineFile
	upload  *campaign.Upload
	members [][]byte // the names of the columns of CSV in JSON; nil: it is no variable
}

// putAudience reads the audience of a draft. It takes the place of the former one when all of it is there.
func (h *campaigns) putAudience(c *call) error {
	csv, err := importMedia(c.r.Header)
	if err != nil {
		return err
	}
	if err := c.ready(audienceMemory); err != nil {
		return err
	}
	upload, err := h.svc.Upload(c.r.Context(), c.caller, c.id)
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
		return noSuch("campaign", x.refused(err))
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(importAnswerTime)) // without deadlines there is no server, but a test
	return c.answer(http.StatusOK, audienceView{Rows: x.rows, Accepted: upload.Accepted, Duplicates: upload.Duplicates, Rejected: x.rejected, Errors: x.faults})
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

// readHeader reads the names of the columns, or says all that is wrong with them.
func (x *audience) readHeader() error {
	var bad fieldErrors
	if err := x.readColumns(audienceColumns, &bad); err != nil {
		return err
	}
	switch {
	case len(bad.list) > 0:
	case len(x.columns) > maxColumns:
		bad.add("body.header", tooManyColumns(len(x.columns)), nil)
	default:
		x.checkColumns(&bad)
	}
	x.oneLine(func(name string) bool { return name == "recipient" || name == "to" })
	for i, name := range x.columns {
		if x.members = append(x.members, nil); name != "" && !x.single[i] {
			x.members[i], _ = jsontext.AppendQuote(nil, name) // it is valid UTF-8
		}
	}
	return bad.err()
}

// line reads a line.
func (x *audience) line() error {
	var (
		found fieldErrors
		l     push.CampaignLine
	)
	text, cells, number, err := x.record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	l.Line = number
	switch {
	case len(found.list) > 0:
	case x.csv:
		x.csvLine(cells, &l, &found)
	default:
		readAgain(text, func(r *reader) { readAudienceLine(r, &l, &found) })
	}
	if len(found.list) > 0 {
		x.reject(number, text, found)
		return nil
	}
	return x.upload.Add(x.ctx, l)
}

// csvLine reads the cells of a line of CSV.
func (x *audience) csvLine(cells []string, l *push.CampaignLine, found *fieldErrors) {
	var variables []byte
	for i, name := range x.columns {
		cell := cells[i]
		switch {
		case name == "": // it is left out
		case name == "recipient":
			takeText(&l.Recipient, cell, name, 1, maxRecipient, found)
			addFault(found, name, shortened(cell))
		case name == "to":
			if takeText(&l.To, cell, name, 0, maxTo, found); cell == "" {
				variables = append(appendMember(variables, toMember), emptyText...)
			}
			addFault(found, name, shortened(cell))
		case strings.Contains(cell, "\x00"):
			addFault(found, name, noNUL)
		default:
			variables = append(appendMember(variables, x.members[i]), ':')
			variables, _ = jsontext.AppendQuote(variables, cell) // it is valid UTF-8
		}
	}
	l.Variables = closeObject(variables)
}

// addFault adds what is wrong with a cell; empty: nothing is.
func addFault(found *fieldErrors, name, wrong string) {
	if wrong != "" {
		found.add(name, wrong, nil)
	}
}

// An empty address is kept as a variable, so that templates can tell it from a line without one. In JSON, null is no address.
var (
	toMember  = []byte(`"to"`)
	emptyText = []byte(`:""`)
)

// takeText is a cell, or a member, that is no variable.
func takeText(to *string, text, name string, least, most int, found *fieldErrors) {
	addFault(found, name, unfit(text, least, most))
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
			found.add(short([]byte(member)), halfPair, nil)
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
				found.add(short([]byte(member)), halfPair, nil)
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
