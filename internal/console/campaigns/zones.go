package campaigns

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// zoneImport keeps the time zones of a file with their recipients, while the file goes by: what is written to it is the file.
type zoneImport struct {
	in   *io.PipeWriter
	done chan struct{}
	made client.Import
	err  error
	bad  badLines
}

// importZones begins an import of the time zones of a file.
func importZones(p *frame.Page, columns *columnForm) *zoneImport {
	from, in := io.Pipe()
	lines, out := io.Pipe()
	z := &zoneImport{in: in, done: make(chan struct{}), bad: badLines{}}
	recipient, zone := columns.Columns[columns.of(asRecipient)].Header, columns.Columns[columns.of(asZone)].Header
	ctx := frame.WithUpload(p.Context(), "# zones.csv has the first line recipient,time_zone, and of your list the columns "+frame.QuoteShell(oneLine(recipient))+" and "+frame.QuoteShell(oneLine(zone))+"\n", "@zones.csv")
	go func() {
		_ = out.CloseWithError(writeZones(out, from, columns))
		_, _ = io.Copy(io.Discard, from) // the audience is read on, whatever becomes of the zones
	}()
	go func() {
		defer close(z.done)
		z.made, z.err = p.API.Recipients.Import(lists.WithBadLines(ctx, z.bad.take), lines, client.CSV)
		_ = lines.CloseWithError(errors.New("the import has ended"))
	}()
	return z
}

// Write takes a part of the file.
func (z *zoneImport) Write(text []byte) (int, error) { return z.in.Write(text) }

// end waits until all zones are kept.
func (z *zoneImport) end() (*client.Import, error) {
	if z == nil {
		return nil, nil
	}
	_ = z.in.Close()
	<-z.done
	return &z.made, z.err
}

// drop ends an import whose file was not taken.
func (z *zoneImport) drop(why error) {
	if z == nil {
		return
	}
	_ = z.in.CloseWithError(why)
	<-z.done
}

// writeZones writes the recipients of a file with their time zones, each in the line that it has there.
func writeZones(to io.Writer, from io.Reader, columns *columnForm) error {
	file, err := lists.OpenCSV(from)
	if err != nil {
		return err
	}
	recipient, zone := columns.of(asRecipient), columns.of(asZone)
	file.OneLine(recipient)
	buffered := bufio.NewWriter(to)
	cells := lists.NewCSVWriter(buffered, lists.PlainCSV, "recipient", "time_zone")
	_ = cells.Flush() // buffered keeps errors
	for at := 2; ; {
		record, line, err := file.Next()
		if errors.Is(err, io.EOF) {
			return buffered.Flush()
		}
		if err != nil {
			return err
		}
		if record[recipient] == "" || record[zone] == "" {
			continue
		}
		for ; at < line; at++ {
			_ = buffered.WriteByte('\n')
		}
		cells.Write(record[recipient], record[zone])
		if err := cells.Flush(); err != nil {
			return err
		}
		at++
	}
}

// oneLine is a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// openCSV opens a file with renamed columns, and returns the shell command that renames them; empty if no column is renamed.
func openCSV(file io.Reader, columns *columnForm) (opened io.Reader, before, body string, err error) {
	list, err := lists.OpenCSV(file)
	if err != nil {
		return nil, "", "", unreadable(err)
	}
	if err := columns.check(list.Columns); err != nil {
		return nil, "", "", err
	}
	names := columns.names()
	if slices.Equal(names, list.Columns) {
		return list.Renamed(names), "", "@" + listName, nil
	}
	return list.Renamed(names), list.RenamedBy(listName, names) + " |\n", "@-", nil
}

// listName is the file name of the user's list in shell commands.
const listName = "your-list.csv"
