package lists

import (
	"encoding/csv"
	"io"
)

// CSVDialect is a format of CSV.
type CSVDialect string

// The dialects of CSV.
const (
	PlainCSV CSVDialect = "plain" // commas and line feeds
	ExcelCSV CSVDialect = "excel" // a byte order mark, semicolons and Windows line ends
)

// CSVWriter writes CSV with cells that no spreadsheet reads as formulas. Audiences and imports restore the original texts. The zero
// value is not useful.
type CSVWriter struct {
	records *csv.Writer
	token   int // the column of page tokens, which are for programs; -1: none
}

// NewCSVWriter returns a writer that has written the names of the columns.
func NewCSVWriter(to io.Writer, dialect CSVDialect, columns ...string) *CSVWriter {
	w := &CSVWriter{records: csv.NewWriter(to), token: -1}
	if dialect == ExcelCSV {
		_, _ = io.WriteString(to, "\uFEFF") // Flush returns the error again
		w.records.Comma, w.records.UseCRLF = ';', true
	}
	for i, name := range columns {
		if name == pageTokenColumn {
			w.token = i
		}
	}
	_ = w.records.Write(columns) // likewise
	return w
}

// pageTokenColumn is the last column of exports that can be continued.
const pageTokenColumn = "page_token"

// Write writes a row to memory.
func (w *CSVWriter) Write(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = cell; i != w.token {
			row[i] = guarded(cell)
		}
	}
	_ = w.records.Write(row) // Flush returns the error
}

// Flush writes the rows in memory.
func (w *CSVWriter) Flush() error {
	w.records.Flush()
	return w.records.Error()
}
