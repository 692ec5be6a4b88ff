package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/rest"
)

// The largest numbers of exports at a time, of all tenants and of each.
const (
	exportsAtOnce  = 16
	exportsPerSelf = 2
)

// ExportPage is the number of rows of an export that are read at once, and exportTime is the time to send them, regardless of the time
// of earlier rows.
const (
	ExportPage = 1000
	exportTime = time.Minute
)

// The media types of lists.
const (
	mediaCSV    = "text/csv"
	MediaNDJSON = "application/x-ndjson"
)

// Rows is an answer of any length that is written row by row, as CSV with a header line or as NDJSON.
type Rows[T any] struct {
	Columns []string
	Cells   func(row *T) []string // of CSV

	// Page returns the next rows, and whether there are more.
	Page func(ctx context.Context) (rows []T, more bool, err error)
}

// DialectParam returns the row of an export's query that selects the format of CSV. exportAs reads it, so that page tokens, which depend on the
// other parameters, do not depend on it.
func DialectParam[Q any]() rest.Field[Q] {
	return rest.Row(
		"dialect", rest.Optional, rest.OneOf(func(*Q, CSVDialect) {}, PlainCSV, ExcelCSV),
		"The format of CSV: plain (the default; commas) or excel (a byte order mark, semicolons and Windows line ends). If Accept allows both, the parameter selects CSV.", nil,
	)
}

// AboutGuards documents CSV.
const AboutGuards = "In CSV, a cell that begins with =, +, -, @ or white space gets an apostrophe in front, so that no spreadsheet reads it as a formula, and a cell that ends with white space gets an apostrophe at its end. " +
	"Apostrophes at the ends of a text are ignored in this test, so that a reader can always remove the right one; audiences and imports of recipients do so. A page_token, and all NDJSON, is written unchanged. Use dialect=excel for a file that a spreadsheet opens by a double click."

// exportAs returns the dialect of CSV that the request's Accept and query select, or "" for NDJSON, which is the default for
// callers without a preference.
func exportAs(c *rest.Call) (CSVDialect, error) {
	asText, asLines := Liking(c.Request.Header, mediaCSV), Liking(c.Request.Header, MediaNDJSON)
	dialect := CSVDialect(c.Request.URL.Query().Get("dialect"))
	switch {
	case asText == 0 && asLines == 0:
		return "", &rest.Refusal{Kind: rest.NotAcceptable, Detail: "accept " + mediaCSV + ", or " + MediaNDJSON}
	case dialect != "" && asText < asLines:
		rest.BadParameter(&c.Errors, "dialect", "is for CSV, but Accept asks for NDJSON: send Accept: "+mediaCSV+", or leave the dialect out", string(dialect))
		return "", c.Errors.Err()
	case dialect == "" && asText > asLines:
		return PlainCSV, nil
	}
	return dialect, nil
}

// Liking returns the weight of a media type in the Accept of a request, from 0 (not accepted) to 1. A request without Accept accepts all.
func Liking(h http.Header, media string) float64 {
	accept := strings.Join(h.Values("Accept"), ",")
	if strings.TrimSpace(accept) == "" {
		return 1
	}
	weight := map[string]float64{}
	for one := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		weight[name] = max(weight[name], q)
	}
	group, _, _ := strings.Cut(media, "/")
	for _, name := range []string{media, group + "/*", "*/*"} {
		if q, said := weight[name]; said {
			return q
		}
	}
	return 0
}

// Export sends the rows. Only a page of them is in memory. An error after the first page breaks off the connection, so that the caller
// does not take a part for the whole.
func Export[T any](exports *bulkhead.Bulkhead[uuid.UUID], c *rest.Call, x Rows[T]) error {
	dialect, err := exportAs(c)
	if err != nil {
		return err
	}
	place, err := exports.Acquire(c.Request.Context(), c.Caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer place.Release()
	if err := c.Reserve(rest.PageBytes); err != nil {
		return err
	}
	out := newRowWriter(c, x, dialect)
	for first := true; ; first = false {
		rows, more, err := x.Page(c.Writer.Whole)
		if err != nil && first {
			return err
		}
		if first {
			out.begin()
		}
		if err == nil {
			err = out.write(rows)
		}
		if err != nil {
			if c.Writer.Whole.Err() == nil {
				c.Logger().ErrorContext(c.Writer.Whole, "export broken off", "request_id", c.Writer.RequestID, "route", c.Writer.Route, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		if !more || c.Request.Method == http.MethodHead {
			return nil
		}
	}
}

// rowWriter writes the rows of an export.
type rowWriter[T any] struct {
	Rows[T]
	c       *rest.Call
	control *http.ResponseController
	text    bytes.Buffer
	dialect CSVDialect // empty: NDJSON
	csv     *CSVWriter
	json    *json.Encoder
}

func newRowWriter[T any](c *rest.Call, x Rows[T], dialect CSVDialect) *rowWriter[T] {
	w := &rowWriter[T]{Rows: x, c: c, dialect: dialect, control: http.NewResponseController(c.Writer)}
	w.json = json.NewEncoder(&w.text)
	w.json.SetEscapeHTML(false)
	return w
}

// begin sends the header of the answer.
func (w *rowWriter[T]) begin() {
	media := MediaNDJSON
	if w.dialect != "" {
		media = mediaCSV + "; charset=utf-8"
		w.csv = NewCSVWriter(&w.text, w.dialect, w.Columns...)
	}
	w.c.Writer.SetHeader("Content-Type", media)
	w.c.Writer.Header().Add("Vary", "Accept")
	w.c.Writer.WriteHeader(http.StatusOK)
}

// write computes rows in the tenant's turn, and sends them.
func (w *rowWriter[T]) write(rows []T) error {
	err := w.c.Computing.Do(w.c.Writer.Whole, w.c.Caller.Tenant, func() error {
		for i := range rows {
			if w.csv != nil {
				w.csv.Write(w.Cells(&rows[i])...)
			} else if err := w.json.Encode(&rows[i]); err != nil {
				return err
			}
		}
		if w.csv != nil {
			return w.csv.Flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(exportTime)) // only tests have no deadlines
	_, err = w.c.Writer.Write(w.text.Bytes())
	if w.text.Reset(); err == nil {
		_ = w.control.Flush()
	}
	return err
}

// NewExports returns the bulkhead of exports.
func NewExports() *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](exportsAtOnce, exportsPerSelf)
}

// DocumentExport documents an answer as CSV and as NDJSON.
func DocumentExport[T any](all map[string]*huma.Response, x Rows[T], example T) {
	media := func(text []byte) *huma.MediaType {
		quoted, _ := json.Marshal(string(text)) // it is a text
		return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(quoted)}
	}
	line, _ := json.Marshal(example) // it is JSON
	var table bytes.Buffer
	rows := NewCSVWriter(&table, PlainCSV, x.Columns...)
	rows.Write(x.Cells(&example)...)
	_ = rows.Flush() // to memory
	all["200"].Content = map[string]*huma.MediaType{mediaCSV: media(table.Bytes()), MediaNDJSON: media(append(line, '\n'))}
}
