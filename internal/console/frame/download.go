package frame

import (
	"fmt"
	"io"
	"net/http"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// MediaCSV is the media type of CSV.
const MediaCSV = "text/csv; charset=utf-8"

// Export streams rows as a file: CSV for spreadsheets, or NDJSON if the URL asks for it. name has no extension. open gets no dialect for
// NDJSON.
func (p *Page) Export(name string, open func(as client.Format, dialect string) (io.ReadCloser, error)) error {
	format, dialect, media, ending := client.CSV, string(lists.ExcelCSV), MediaCSV, ".csv"
	switch asked := p.Query("format"); asked {
	case "", "csv":
	case "ndjson":
		format, dialect, media, ending = client.NDJSON, "", string(client.NDJSON), ".ndjson"
	default:
		return &client.Problem{Title: "Unknown format", Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("Download as csv or ndjson, not as %q.", asked)}
	}
	rows, err := open(format, dialect)
	if err != nil {
		return err
	}
	defer rows.Close()
	p.Attach(media, name+ending)
	if _, err := io.Copy(p.Writer, rows); err != nil {
		panic(http.ErrAbortHandler) // cut the connection, so that the browser reports an incomplete file
	}
	return nil
}

// Attach starts an answer that the browser saves as a file.
func (p *Page) Attach(media, file string) {
	p.Sent = true
	p.Writer.Header().Set("Content-Type", media)
	p.Writer.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
}
