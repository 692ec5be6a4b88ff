package suppressions

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/suppression"
)

// importColumns are the columns of an import.
var importColumns = []string{"channel", "address", "reason", "until"}

const (
	importMemory  = 4 << 20 // of a portion that is stored, and of the answer
	importPortion = 500     // entries that are stored in one transaction
)

// suppressionImportView counts the lines of an import.
type suppressionImportView struct {
	Rows     int               `json:"rows" doc:"Lines but for the header and empty ones: created, updated and rejected."`
	Created  int               `json:"created" doc:"Entries that did not exist before."`
	Updated  int               `json:"updated" doc:"Entries that existed before, including those of an earlier line."`
	Rejected int               `json:"rejected"`
	Canceled int               `json:"canceled" doc:"Scheduled pushes to the addresses that were canceled."`
	Errors   []lists.LineFault `json:"errors" doc:"The errors of the first hundred rejected lines."`
}

// listImport is an import in progress.
type listImport struct {
	*suppressions
	c    *rest.Call
	in   *lists.LineFile
	next []suppression.Entry // to be stored in one transaction
	at   map[suppression.Position]int
	log  auditlog.Position // in the audit log; zero: nothing was stored
	suppressionImportView
}

// importList stores the entries in a text of any length, line by line.
func (h *suppressions) importList(c *rest.Call) error {
	asCSV, err := lists.IsCSV(c.Request.Header)
	if err != nil {
		return err
	}
	if err := c.Ready(importMemory); err != nil {
		return err
	}
	x := &listImport{suppressions: h, c: c, in: lists.Open(c, asCSV, "may be stored"), at: map[suppression.Position]int{}}
	defer x.logged()
	if err := x.read(); err != nil {
		c.Drain(rest.MaxDrained)
		return x.in.Refused(err)
	}
	if err := x.store(); err != nil {
		return err
	}
	x.Rows, x.Rejected, x.Errors = x.in.Rows, x.in.Rejected, x.in.Errors
	_ = http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(lists.AnswerTime)) // only tests have no deadlines
	return c.Answer(http.StatusOK, x.suppressionImportView)
}

// read reads all lines, and stores all except the last portion.
func (x *listImport) read() error {
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

// readHeader reads the header of CSV. The columns of an export that an import does not need are allowed.
func (x *listImport) readHeader() error {
	var bad rest.FieldErrors
	columns := "the columns are: " + strings.Join(importColumns, ", ")
	if err := x.in.ReadColumns(columns, &bad); err != nil {
		return err
	}
	if len(bad.List) == 0 {
		x.in.CheckColumns(&bad, importColumns[:2]...)
		for i, name := range x.in.Columns {
			if name != "" && lists.WrongName(name) == "" && !slices.Contains(exportColumns, name) {
				bad.Add(rest.Item("body.header", i), "unknown column; "+columns, rest.Shown(name))
			}
		}
		x.in.OneLine(func(name string) bool { return name != "" })
	}
	return bad.Err()
}

// line reads a line. It stores a portion when that is full.
func (x *listImport) line() error {
	var (
		e     suppression.Entry
		found rest.FieldErrors
	)
	text, cells, number, err := x.in.Record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	switch {
	case len(found.List) > 0:
	case x.in.CSV:
		x.cells(cells, &e, &found)
	default:
		rest.ReadAgain(text, func(r *rest.Reader) {
			entryFields.Read(r, &e, &found)
			if r.End(); r.Err != nil {
				found.Add("", r.Err.Error(), nil)
			}
		})
	}
	if x.checked(x.c.Caller.Tenant, &e, x.c.Now(), &found); len(found.List) > 0 {
		x.in.Reject(number, text, found)
		return nil
	}
	if i, twice := x.at[e.Position()]; twice { // the last line counts
		x.next[i] = e
		x.Updated++
		return nil
	}
	x.at[e.Position()] = len(x.next)
	if x.next = append(x.next, e); len(x.next) < importPortion {
		return nil
	}
	return x.store()
}

// cells reads the cells of a line of CSV.
func (x *listImport) cells(cells []string, e *suppression.Entry, found *rest.FieldErrors) {
	for i, name := range x.in.Columns {
		wrong, cell := "", strings.TrimSpace(cells[i])
		switch {
		case name == "channel":
			e.Channel = quota.Name(cell)
			wrong = rest.Unfit(e.Channel, 1, 64)
		case name == "address":
			e.Address = cell
			if wrong = rest.Unfit(cell, 1, suppression.MaxAddress); wrong == "" {
				wrong = lists.Shortened(cell)
			}
		case name == "reason" && cell != "":
			if e.Reason = suppression.Reason(strings.ToLower(cell)); !slices.Contains(suppression.Reasons, e.Reason) {
				wrong = "must be one of hard_bounce, complaint, stop, unregistered and manual"
			}
		case name == "until" && cell != "":
			var err error
			if e.Until, err = time.Parse(time.RFC3339, cell); err != nil {
				wrong = "must be a time such as 2027-01-01T00:00:00Z"
			}
		}
		if wrong != "" {
			found.Add(name, wrong, rest.Shown(cells[i]))
		}
	}
}

// store stores the portion in one transaction.
func (x *listImport) store() error {
	if len(x.next) == 0 {
		return nil
	}
	if x.log.ID == uuid.Nil {
		var err error
		if x.log, err = x.svc.BeginSuppressionImport(x.in.Context, x.c.Caller.Tenant); err != nil {
			return err
		}
	}
	stored, canceled, err := x.svc.Suppress(x.in.Context, x.c.Caller.Tenant, x.next, false)
	if err != nil {
		return rest.NoSuch("tenant", err)
	}
	for i := range stored {
		if stored[i].Created {
			x.Created++
		} else {
			x.Updated++
		}
	}
	x.Canceled += canceled.Pushes
	x.next = x.next[:0]
	clear(x.at)
	return nil
}

// logTime is the time to record the result of an import in the audit log.
const logTime = 5 * time.Second

// logged records the counts of stored entries in the audit log, also after an error.
func (x *listImport) logged() {
	if x.log.ID == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.in.Context), logTime)
	defer cancel()
	if err := x.svc.EndImport(ctx, x.c.Caller.Tenant, x.log, x.Created, x.Updated, x.Canceled); err != nil {
		x.c.Logger().WarnContext(ctx, "could not record the counts of an import in the audit log", "request_id", x.c.Writer.RequestID, "error", err)
	}
}
