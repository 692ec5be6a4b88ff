package campaigns

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/rest"
)

// audienceMemory is the memory of a portion that is stored, and of the answer.
const audienceMemory = 8 << 20

const audienceColumns = "the column recipient is needed; to is the address, and every other column a variable"

// audienceView counts the lines of an audience.
type audienceView struct {
	Rows       int               `json:"rows" doc:"All lines except the header and empty ones: accepted, duplicates and rejected."`
	Accepted   int64             `json:"accepted" doc:"Recipients of the campaign."`
	Duplicates int64             `json:"duplicates" doc:"Further lines of a recipient: the first line counts."`
	Rejected   int               `json:"rejected"`
	Errors     []lists.LineFault `json:"errors" doc:"The errors of the first hundred rejected lines."`
}

// audience is an upload of a campaign's audience.
type audience struct {
	*lists.LineFile
	upload  *campaign.Upload
	members [][]byte // the names of the columns of CSV in JSON; nil: the column is no variable
}

// putAudience reads the audience of a draft, which replaces the previous one after the upload is complete.
func (h *campaigns) putAudience(c *rest.Call) error {
	csv, err := lists.IsCSV(c.Request.Header)
	if err != nil {
		return err
	}
	if err := c.Ready(audienceMemory); err != nil {
		return err
	}
	upload, err := h.svc.Upload(c.Request.Context(), c.Caller, c.ID)
	if err != nil {
		c.Drain(rest.MaxDrained)
		return rest.NoSuch("campaign", err)
	}
	x := &audience{LineFile: lists.Open(c, csv, "the campaign keeps the audience that it has"), upload: upload}
	if err := x.read(); err != nil {
		upload.Drop()
		c.Drain(rest.MaxDrained)
		if _, ok := errors.AsType[*campaign.TooLargeError](err); ok {
			c.Errors.Add("body", err.Error(), nil)
			return c.Errors.Err()
		}
		return rest.NoSuch("campaign", x.Refused(err))
	}
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(lists.AnswerTime)) // only tests have no deadlines
	return c.Answer(http.StatusOK, audienceView{Rows: x.Rows, Accepted: upload.Accepted, Duplicates: upload.Duplicates, Rejected: x.Rejected, Errors: x.Errors})
}

// read reads all lines.
func (x *audience) read() error {
	if x.CSV {
		if err := x.readHeader(); err != nil {
			return err
		}
	}
	for {
		err := x.line()
		if errors.Is(err, io.EOF) {
			_, err := x.upload.End(x.Context)
			return err
		}
		if err != nil {
			return err
		}
	}
}

// readHeader reads the names of the columns, and returns all errors in them.
func (x *audience) readHeader() error {
	var bad rest.FieldErrors
	if err := x.ReadColumns(audienceColumns, &bad); err != nil {
		return err
	}
	switch {
	case len(bad.List) > 0:
	case len(x.Columns) > lists.MaxColumns:
		bad.Add("body.header", lists.TooManyColumns(len(x.Columns)), nil)
	default:
		x.CheckColumns(&bad, "recipient")
	}
	x.OneLine(func(name string) bool { return name == "recipient" || name == "to" })
	for i, name := range x.Columns {
		if x.members = append(x.members, nil); name != "" && !x.Single[i] {
			x.members[i], _ = jsontext.AppendQuote(nil, name) // it is valid UTF-8
		}
	}
	return bad.Err()
}

// line reads a line.
func (x *audience) line() error {
	var (
		found rest.FieldErrors
		l     broadcast.AudienceLine
	)
	text, cells, number, err := x.Record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	l.Line = number
	switch {
	case len(found.List) > 0:
	case x.CSV:
		x.csvLine(cells, &l, &found)
	default:
		rest.ReadAgain(text, func(r *rest.Reader) { readAudienceLine(r, &l, &found) })
	}
	if len(found.List) > 0 {
		x.Reject(number, text, found)
		return nil
	}
	return x.upload.Add(x.Context, l)
}

// csvLine reads the cells of a line of CSV.
func (x *audience) csvLine(cells []string, l *broadcast.AudienceLine, found *rest.FieldErrors) {
	var variables []byte
	for i, name := range x.Columns {
		cell := cells[i]
		switch {
		case name == "": // the column is ignored
		case name == "recipient":
			takeText(&l.Recipient, cell, name, 1, pushes.MaxRecipient, found)
			addFault(found, name, lists.Shortened(cell))
		case name == "to":
			if takeText(&l.To, cell, name, 0, pushes.MaxTo, found); cell == "" {
				variables = append(appendMember(variables, toMember), emptyText...)
			}
			addFault(found, name, lists.Shortened(cell))
		case strings.Contains(cell, "\x00"):
			addFault(found, name, lists.NoNUL)
		default:
			variables = append(appendMember(variables, x.members[i]), ':')
			variables, _ = jsontext.AppendQuote(variables, cell) // it is valid UTF-8
		}
	}
	l.Variables = closeObject(variables)
}

// addFault adds the error of a cell, unless it is empty.
func addFault(found *rest.FieldErrors, name, wrong string) {
	if wrong != "" {
		found.Add(name, wrong, nil)
	}
}

// An empty address becomes a variable, so that templates can distinguish it from a line without an address. In JSON, null is no address.
var (
	toMember  = []byte(`"to"`)
	emptyText = []byte(`:""`)
)

// takeText reads a cell or a member that is no variable.
func takeText(to *string, text, name string, least, most int, found *rest.FieldErrors) {
	addFault(found, name, rest.Unfit(text, least, most))
	*to = text
}

// appendMember adds the name of a member to an object, which it opens if necessary.
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
func readAudienceLine(r *rest.Reader, l *broadcast.AudienceLine, found *rest.FieldErrors) {
	if r.Peek() != '{' {
		if raw := r.Value(); r.Err == nil {
			found.AddJSON("", "must be an object", raw)
		}
	} else {
		readAudienceMembers(r, l, found)
	}
	if r.End(); r.Err != nil {
		found.Add("", r.Err.Error(), nil)
	}
}

func readAudienceMembers(r *rest.Reader, l *broadcast.AudienceLine, found *rest.FieldErrors) {
	var (
		variables []byte
		has       bool
		n         = 0
	)
	for name := range r.Members {
		n++
		member := string(name)
		raw := r.Value()
		if r.Err != nil || n > lists.MaxColumns {
			continue
		}
		text, ok := "", true
		if raw[0] == '"' {
			text, ok = rest.Unquote(raw)
		}
		switch own := member == "recipient" || member == "to"; {
		case raw[0] == '{' || raw[0] == '[':
			found.Add(rest.Short([]byte(member)), "must be a string, a number, true, false or null", nil)
		case !ok:
			found.Add(rest.Short([]byte(member)), rest.HalfPair, nil)
		case strings.Contains(text, "\x00"):
			found.Add(rest.Short([]byte(member)), lists.NoNUL, nil)
		case own && raw[0] != '"' && !(member == "to" && string(raw) == "null"):
			found.Add(member, "must be a string", nil)
		case member == "recipient":
			has = true
			takeText(&l.Recipient, text, member, 1, pushes.MaxRecipient, found)
		case member == "to":
			if takeText(&l.To, text, member, 0, pushes.MaxTo, found); string(raw) == `""` {
				variables = append(appendMember(variables, toMember), emptyText...)
			}
		default:
			quoted, err := jsontext.AppendQuote(nil, member)
			if err != nil {
				found.Add(rest.Short([]byte(member)), rest.HalfPair, nil)
				continue
			}
			variables = append(append(appendMember(variables, quoted), ':'), raw...)
		}
	}
	if n > lists.MaxColumns {
		found.Add("", fmt.Sprintf("must have at most %d members, has %d", lists.MaxColumns, n), nil)
	}
	if r.Err == nil && !has && !found.Has("recipient") {
		found.Add("recipient", "is required", nil)
	}
	l.Variables = closeObject(variables)
}
