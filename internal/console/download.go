package console

import (
	"fmt"
	"io"
	"net/http"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// mediaCSV is what CSV is sent as.
const mediaCSV = "text/csv; charset=utf-8"

// export hands rows on as a file while they are read: as CSV for spreadsheets, or as NDJSON, which has no dialect, where the URL asks for
// that. The name has no ending.
func (p *page) export(name string, open func(as client.Format, dialect string) (io.ReadCloser, error)) error {
	format, dialect, media, ending := client.CSV, string(lists.ExcelCSV), mediaCSV, ".csv"
	switch asked := p.query("format"); asked {
	case "", "csv":
	case "ndjson":
		format, dialect, media, ending = client.NDJSON, "", string(client.NDJSON), ".ndjson"
	default:
		return &client.Problem{Title: "There is no such format", Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("A file can be had as csv or as ndjson, not as %q.", asked)}
	}
	rows, err := open(format, dialect)
	if err != nil {
		return err
	}
	defer rows.Close()
	p.attach(media, name+ending)
	if _, err := io.Copy(p.w, rows); err != nil {
		panic(http.ErrAbortHandler) // a part must not be taken for the whole
	}
	return nil
}

// attach begins an answer that the browser keeps as a file.
func (p *page) attach(media, file string) {
	p.sent = true
	p.w.Header().Set("Content-Type", media)
	p.w.Header().Set("Content-Disposition", `attachment; filename="`+file+`"`)
}
