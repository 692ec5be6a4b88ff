package recipients

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

const importPath = Path + "/import"

// importMemory is the memory of a portion that is stored, and of the answer.
const importMemory = 8 << 20

// importView counts the lines of an import.
type importView struct {
	Rows     int               `json:"rows" doc:"Lines but for the header and empty ones: created, updated and rejected."`
	Created  int               `json:"created" doc:"Recipients that did not exist before."`
	Updated  int               `json:"updated" doc:"Recipients that existed before, including those of an earlier line."`
	Rejected int               `json:"rejected"`
	Canceled int               `json:"canceled" doc:"Scheduled pushes that were canceled, because their recipients have opted out of them."`
	Errors   []lists.LineFault `json:"errors" doc:"The errors of the first hundred rejected lines."`
}

// importFields is a line of NDJSON.
var importFields = rest.Table[description]{SchemaName: "RecipientLine", Fields: append([]rest.Field[description]{
	rest.Row("recipient", rest.Required, rest.Text(func(d *description, s string) { d.Recipient = s }, 1, pushes.MaxRecipient), "", "user-42"),
}, descriptionFields...)}

// memberOf maps names to the members of a description.
var memberOf = map[string]booking.Members{
	"time_zone": booking.TimeZone, "addresses": booking.Addresses, "opt_outs": booking.Wishes, "limits": booking.Limits, "attributes": booking.Attributes,
}

// importService stores the recipients of an import.
type importService interface {
	describer
	BeginImport(ctx context.Context, tenant uuid.UUID) (auditlog.Position, error)
	EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error
	Channels(tenant uuid.UUID) []string
}

// imports serves the import of recipients.
type imports struct{ svc importService }

// recipientImport is an import in progress.
type recipientImport struct {
	in  *lists.LineFile
	svc importService
	c   *rest.Call
	csv *csvReader // nil: NDJSON

	older, waiting portion           // to be stored, in this order
	entry          auditlog.Position // in the audit log; zero: nothing was stored
	importView
}

// importRecipients stores the descriptions in a text of any length, line by line.
func (h *imports) importRecipients(c *rest.Call) error {
	asCSV, err := lists.IsCSV(c.Request.Header)
	if err != nil {
		return err
	}
	if err := c.Ready(importMemory); err != nil {
		return err
	}
	x := &recipientImport{svc: h.svc, c: c, in: lists.Open(c, asCSV, "may be stored"), older: newPortion(), waiting: newPortion()}
	defer x.logged()
	if err := x.readLines(); err != nil {
		c.Drain(rest.MaxDrained)
		return x.in.Refused(err)
	}
	for range 2 {
		if err := x.store(); err != nil {
			return err
		}
	}
	x.Rows, x.Rejected, x.Errors = x.in.Rows, x.in.Rejected, x.in.Errors
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(lists.AnswerTime)) // only tests have no deadlines
	return c.Answer(http.StatusOK, x.importView)
}

// readLines reads all lines, and stores all except the last portions.
func (x *recipientImport) readLines() error {
	if x.in.CSV {
		if err := x.readHeader(); err != nil {
			return err
		}
	}
	for {
		if err := x.line(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// readHeader reads the header of CSV.
func (x *recipientImport) readHeader() error {
	var bad rest.FieldErrors
	if err := x.in.ReadColumns("the columns are: "+importColumns, &bad); err != nil {
		return err
	}
	if len(bad.List) == 0 {
		for i, name := range x.in.Columns {
			x.in.Columns[i] = foldedColumn(name)
		}
		x.in.CheckColumns(&bad, "recipient")
		x.csv = newCSVReader(x.in.Columns, x.svc.Channels(x.c.Caller.Tenant), &bad)
		x.in.OneLine(x.csv.oneLine)
	}
	return bad.Err()
}

func (h *imports) routes(s *rest.Spec) []rest.Operation {
	line := json.RawMessage(`"{\"recipient\": \"user-42\", \"time_zone\": \"Asia/Tokyo\", \"attributes\": {\"plan\": \"gold\"}}\n"`)
	return []rest.Operation{{
		ID: "import-recipients", Method: http.MethodPost, Path: importPath, Tag: Tag, Scope: push.ScopeRecipientsWrite, Serve: h.importRecipients,
		Summary: "Import recipients",
		Description: "Each line of CSV with a header, or of NDJSON (an object with the recipient and the members of a description), describes a recipient. There may be any number of lines. " +
			"Members that the header or the line does not name stay unchanged; an empty cell clears a member. The columns are " + strings.NewReplacer("<", "`<", ">", ">`").Replace(importColumns) +
			"; several channels or categories in a cell are separated by spaces, commas or semicolons, columns by commas, semicolons or tabs. The text is UTF-8, or UTF-16 with a byte order mark; a line has at most 64 KiB. Columns without a name are ignored. " + lists.AboutLists + " " +
			"Valid lines are stored even if others have errors. If a recipient appears twice within 500 lines, only the last line counts; if it appears again later, members that the later line does not name keep the values of the earlier one. The import can be repeated.",
		Body: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"text/csv":             {Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(`"recipient,time_zone,address.sms,attribute.plan\nuser-42,Asia/Tokyo,+819012345678,gold\n"`)},
			"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}, Example: line},
		}},
		Status: http.StatusOK, Answer: "The counts of the lines.",
		Example: importView{Rows: 3, Created: 1, Updated: 1, Rejected: 1, Errors: []lists.LineFault{{Line: 4, Message: "time_zone: there is no time zone \"Europe/Berln\"; the nearest name is Europe/Berlin"}}},
	}}
}
