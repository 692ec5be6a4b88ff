package frame

import (
	"fmt"
	"io"
	"net/http"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/httpapi"
)

// MediaCSV is what CSV is sent as.
const MediaCSV = "text/csv; charset=utf-8"

// Export hands rows on as a file while they are read: as CSV for spreadsheets, or as NDJSON, which has no dialect, where the URL asks for
// that. The name has no ending.
func (p *Page) Export(name string, open func(as client.Format, dialect string) (io.ReadCloser, error)) error {
	format, dialect, media, ending := client.CSV, string(httpapi.ExcelCSV), MediaCSV, ".csv"
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
		panic(http.ErrAbortHandler) // a part must not be taken for the whole
	}
	return nil
}

// Attach begins an answer that the browser keeps as a file.
func (p *Page) Attach(media, file string) {
	p.Sent = true
	p.Writer.Header().Set("Content-Type", media)
	p.Writer.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
}
