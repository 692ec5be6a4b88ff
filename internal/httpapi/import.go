package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

const importPath = recipientsPath + "/import"

// importErrors is how many faults an answer tells.
const importErrors = 100

// importMemory is for what is stored at once, and for the answer.
const importMemory = 8 << 20

// importAnswerTime is for the answer, whatever time the import took.
const importAnswerTime = time.Minute

// importView is what became of an import.
type importView struct {
	Rows     int               `json:"rows" doc:"Lines but for the header and empty ones: created, updated and rejected."`
	Created  int               `json:"created" doc:"Recipients that were not known before."`
	Updated  int               `json:"updated" doc:"Recipients that were known before, from an earlier line too."`
	Rejected int               `json:"rejected"`
	Canceled int               `json:"canceled" doc:"Scheduled pushes that were canceled, because their recipients do not want them."`
	Errors   []importErrorView `json:"errors" doc:"Those of the first hundred rejected lines."`
}

type importErrorView struct {
	Line    int    `json:"line" doc:"Where the line begins; the header is line 1."`
	Message string `json:"message"`
}

// importFields are a line of NDJSON.
var importFields = table[description]{schemaName: "RecipientLine", fields: append([]field[description]{
	{"recipient", required, text(func(d *description, s string) { d.Recipient = s }, 1, maxRecipient), "", "user-42"},
}, descriptionFields...)}

// memberOf names the members of a description.
var memberOf = map[string]booking.Members{
	"time_zone": booking.TimeZone, "addresses": booking.Addresses, "opt_outs": booking.Wishes, "limits": booking.Limits, "attributes": booking.Attributes,
}

// recipientImport is an import under way.
type recipientImport struct {
	*api
	c     *call
	ctx   context.Context
	lines *lineReader
	csv   *csvReader // nil: NDJSON

	older, waiting portion // to be stored, in this order
	importView
}

// importRecipients stores what a text of any length says of recipients, line by line.
func (a *api) importRecipients(c *call) error {
	var bad fieldErrors
	c.noQuery(&bad)
	asCSV, err := importMedia(c.r.Header)
	if err != nil {
		return err
	}
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(importMemory); err != nil {
		return err
	}
	control := http.NewResponseController(c.w)
	body := &patientReader{body: c.r.Body, control: control}
	x := &recipientImport{api: a, c: c, ctx: c.w.whole, lines: newLineReader(body, asCSV), older: newPortion(), waiting: newPortion()}
	x.Errors = []importErrorView{}
	if asCSV {
		if err := x.header(); err != nil {
			return err
		}
	}
	for {
		if err := x.line(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
	}
	for range 2 {
		if err := x.store(); err != nil {
			return err
		}
	}
	_ = control.SetWriteDeadline(time.Now().Add(importAnswerTime)) // without deadlines there is no server, but a test
	return a.answer(c.w, http.StatusOK, x.importView)
}

// importMedia tells CSV from NDJSON.
func importMedia(h http.Header) (asCSV bool, err error) {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	plain := h.Get("Content-Encoding") == "" || strings.EqualFold(h.Get("Content-Encoding"), "identity")
	if err == nil && plain && (media == "text/csv" || media == "application/x-ndjson") && (charset == "" || charset == "utf-8" || strings.HasPrefix(charset, "utf-16")) {
		return media == "text/csv", nil
	}
	return false, &refusal{kind: unsupportedMedia, detail: "send the body as text/csv with a header line, or as application/x-ndjson, without a Content-Encoding"}
}

// next reads the next line. A body that breaks off is a fault of the request.
func (x *recipientImport) next() (text []byte, number int, long bool, err error) {
	text, number, long, err = x.lines.line()
	if err != nil && !errors.Is(err, io.EOF) {
		if gone := x.ctx.Err(); gone != nil {
			return text, number, long, gone
		}
		bad := malformed(fmt.Sprintf("could not be read to its end; %d lines before line %d were read, and may be stored", x.Rows, number))
		return text, number, long, bad
	}
	return text, number, long, err
}

// header reads the first line of CSV. That of Excel may say what separates the columns.
func (x *recipientImport) header() error {
	var bad fieldErrors
	text, _, long, err := x.next()
	if err == nil && !long && len(text) == 5 && strings.HasPrefix(strings.ToLower(string(text)), "sep=") {
		text, _, long, err = x.next()
	}
	x.csv = &csvReader{}
	switch {
	case errors.Is(err, io.EOF):
		bad.add("body.header", "is missing; the columns are: "+importColumns, nil)
	case err != nil:
		return err
	case long:
		bad.add("body.header", fmt.Sprintf("must have at most %d bytes", maxImportLine), nil)
	case !utf8.Valid(text):
		bad.add("body.header", errEncoding.Error(), nil)
	default:
		x.csv.header(string(text), x.svc.Channels(), &bad)
		x.lines.comma, x.lines.whole = x.csv.comma, x.csv.whole
	}
	return bad.err()
}

func (a *api) importRoutes(s *spec) []operation {
	line := json.RawMessage(`"{\"recipient\": \"user-42\", \"time_zone\": \"Asia/Tokyo\", \"attributes\": {\"plan\": \"gold\"}}\n"`)
	return []operation{{
		id: "import-recipients", method: http.MethodPost, path: importPath, tag: tagRecipients, scope: push.ScopeRecipientsWrite, serve: a.importRecipients,
		summary: "Import recipients",
		description: "Describes a recipient by each line of CSV with a header, or of NDJSON (an object with the recipient and the members of a description), of any number. " +
			"What the header, or a line, does not name is left as it was; an empty cell clears. The columns are " + strings.NewReplacer("<", "`<", ">", ">`").Replace(importColumns) +
			"; several channels or categories in a cell are separated by spaces, columns by commas, semicolons or tabs. The text is UTF-8, or UTF-16 with a byte order mark; a line has at most 64 KiB. " +
			"Good lines are kept whatever is wrong with others. Of a recipient who comes twice within 500 lines, the last line alone counts; of one who comes again later, what that line does not name stays as the earlier one said. The import can be repeated.",
		body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"text/csv":             {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"recipient,time_zone,address.sms,attribute.plan\nuser-42,Asia/Tokyo,+819012345678,gold\n"`)},
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}, Example: line},
		}},
		status: http.StatusOK, answer: "What became of the lines.",
		example: importView{Rows: 3, Created: 1, Updated: 1, Rejected: 1, Errors: []importErrorView{{4, "time_zone: there is no time zone \"Europe/Berln\"; the nearest name is Europe/Berlin"}}},
	}}
}
