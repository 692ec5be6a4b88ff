package httpapi

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
)

// How many exports may go on at a time, of all tenants and of each.
const (
	exportsAtOnce  = 16
	exportsPerSelf = 2
)

// exportPage is how many rows of an export are read at once, and exportTime is how long a caller may take for them, whatever time
// the export took before.
const (
	exportPage = 1000
	exportTime = time.Minute
)

const (
	mediaCSV    = "text/csv"
	mediaNDJSON = "application/x-ndjson"
)

// exported is an answer of any length, a row after the other, as CSV with a header line or as NDJSON.
type exported[T any] struct {
	columns []string
	cells   func(row *T) []string // of CSV

	// page returns the next rows. The export ends with the first page that is not followed by more.
	page func(ctx context.Context) (rows []T, more bool, err error)
}

// dialectParam is the row of an export's query that says how CSV is written. exportAs reads it, so that page tokens, which go with the
// other parameters, do not depend on it.
func dialectParam[Q any]() field[Q] {
	return row(
		"dialect", optional, oneOf(func(*Q, CSVDialect) {}, PlainCSV, ExcelCSV),
		"The format of CSV: plain (the default; commas) or excel (a byte order mark, semicolons and Windows line ends). If Accept allows both, the parameter selects CSV.", nil,
	)
}

// aboutGuards documents CSV.
const aboutGuards = "In CSV, a cell that begins with =, +, -, @ or white space gets an apostrophe in front, so that no spreadsheet reads it as a formula, and a cell that ends with white space gets an apostrophe at its end. " +
	"Apostrophes at the ends of a text are ignored in this test, so that a reader can always remove the right one; audiences and imports of recipients do so. A page_token, and all NDJSON, is written unchanged. Use dialect=excel for a file that a spreadsheet opens by a double click."

// exportAs says in which dialect an export is to be CSV, by the request's Accept and query; empty: it is to be NDJSON, which is for
// callers who do not say.
func exportAs(c *call) (CSVDialect, error) {
	asText, asLines := liking(c.r.Header, mediaCSV), liking(c.r.Header, mediaNDJSON)
	dialect := CSVDialect(c.r.URL.Query().Get("dialect"))
	switch {
	case asText == 0 && asLines == 0:
		return "", &refusal{kind: notAcceptable, detail: "accept " + mediaCSV + ", or " + mediaNDJSON}
	case dialect != "" && asText < asLines:
		badParameter(&c.bad, "dialect", "is for CSV, but Accept asks for NDJSON: send Accept: "+mediaCSV+", or leave the dialect out", string(dialect))
		return "", c.bad.err()
	case dialect == "" && asText > asLines:
		return PlainCSV, nil
	}
	return dialect, nil
}

// liking is how much the Accept of a request likes a media type: from 0, not at all, to 1. A request without one likes all.
func liking(h http.Header, media string) float64 {
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

// export sends the rows. Nothing but a page of them is in memory. What goes wrong on the way breaks the connection off: the caller
// must not take a part for the whole.
func export[T any](exports *bulkhead.Bulkhead[uuid.UUID], c *call, x exported[T]) error {
	dialect, err := exportAs(c)
	if err != nil {
		return err
	}
	place, err := exports.Acquire(c.r.Context(), c.caller.Tenant, 1)
	if err != nil {
		return err
	}
	defer place.Release()
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	out := newRowWriter(c, x, dialect)
	for first := true; ; first = false {
		rows, more, err := x.page(c.w.whole)
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
			if c.w.whole.Err() == nil {
				c.logger().ErrorContext(c.w.whole, "export broken off", "request_id", c.w.id, "route", c.w.route, "error", err)
			}
			panic(http.ErrAbortHandler)
		}
		if !more || c.r.Method == http.MethodHead {
			return nil
		}
	}
}

// rowWriter writes the rows of an export.
type rowWriter[T any] struct {
	exported[T]
	c       *call
	control *http.ResponseController
	text    bytes.Buffer
	dialect CSVDialect // empty: NDJSON
	csv     *CSVWriter
	json    *json.Encoder
}

func newRowWriter[T any](c *call, x exported[T], dialect CSVDialect) *rowWriter[T] {
	w := &rowWriter[T]{exported: x, c: c, dialect: dialect, control: http.NewResponseController(c.w)}
	w.json = json.NewEncoder(&w.text)
	w.json.SetEscapeHTML(false)
	return w
}

// begin sends the header of the answer.
func (w *rowWriter[T]) begin() {
	media := mediaNDJSON
	if w.dialect != "" {
		media = mediaCSV + "; charset=utf-8"
		w.csv = NewCSVWriter(&w.text, w.dialect, w.columns...)
	}
	w.c.w.setHeader("Content-Type", media)
	w.c.w.Header().Add("Vary", "Accept")
	w.c.w.WriteHeader(http.StatusOK)
}

// write sends rows, when it is the tenant's turn to compute them.
func (w *rowWriter[T]) write(rows []T) error {
	err := w.c.computing.Do(w.c.w.whole, w.c.caller.Tenant, func() error {
		for i := range rows {
			if w.csv != nil {
				w.csv.Write(w.cells(&rows[i])...)
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
	_ = w.control.SetWriteDeadline(time.Now().Add(exportTime)) // without deadlines there is no server, but a test
	_, err = w.c.w.Write(w.text.Bytes())
	if w.text.Reset(); err == nil {
		_ = w.control.Flush()
	}
	return err
}

// newExports shares the exports that go on at a time.
func newExports() *bulkhead.Bulkhead[uuid.UUID] {
	return bulkhead.New[uuid.UUID](exportsAtOnce, exportsPerSelf)
}

// exports documents an answer as CSV and as NDJSON.
func exports[T any](all map[string]*huma.Response, x exported[T], example T) {
	media := func(text []byte) *huma.MediaType {
		quoted, _ := json.Marshal(string(text)) // it is a text
		return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: json.RawMessage(quoted)}
	}
	line, _ := json.Marshal(example) // it is JSON
	var table bytes.Buffer
	rows := NewCSVWriter(&table, PlainCSV, x.columns...)
	rows.Write(x.cells(&example)...)
	_ = rows.Flush() // to memory
	all["200"].Content = map[string]*huma.MediaType{mediaCSV: media(table.Bytes()), mediaNDJSON: media(append(line, '\n'))}
}
