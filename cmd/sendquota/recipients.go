package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/app"
)

type importRecipients struct {
	apiFlags
	File   string `arg:"" help:"A file of CSV with a header line, or, if its name ends in .ndjson, .jsonl or .json, of NDJSON. -: standard input."`
	Format string `enum:"auto,csv,ndjson" default:"auto" help:"csv, ndjson, or auto: by the name of the file."`
	jsonFlag
}

// Help lists the columns.
func (importRecipients) Help() string {
	return `The columns of CSV are recipient, time_zone, address.<channel>, opt_out_all, opt_out_channels, opt_out_categories (words separated by spaces, commas or semicolons), limit.<rule> and attribute.<name>.
A line of NDJSON is an object with the recipient and the members of PUT /v1/recipients/{id}. Members that the header, or a line, does not name stay as they are.

The import can be repeated. It needs the API, and no database.`
}

func (c importRecipients) Run() error {
	ctx, stop := app.UntilSignal()
	defer stop()
	api, err := c.open("recipients:write", client.Config{Retries: -1})
	if err != nil {
		return exitStatus{err, 2}
	}
	found, err := c.send(ctx, api)
	if err != nil {
		return exitStatus{refusal(err), 2}
	}
	var shown strings.Builder
	printImport(&shown, found)
	if err := c.print(found, "%s", shown.String()); err != nil {
		return exitStatus{fmt.Errorf("the file was imported, and the result cannot be printed: %w", err), 2}
	}
	if found.Rejected > 0 {
		return exitStatus{fmt.Errorf("%d of %d lines were rejected", found.Rejected, found.Rows), 1}
	}
	return nil
}

// send sends the file, with a progress bar on a terminal.
func (c importRecipients) send(ctx context.Context, api *client.Client) (client.Import, error) {
	in, size := os.Stdin, int64(-1)
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return client.Import{}, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return client.Import{}, err
		}
		if in = file; info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	bar := newBytesBar(size, "importing")
	defer bar.Finish()
	found, err := api.Recipients.Import(ctx, watchedReader(in, bar, size), chosenFormat(c.Format, c.File))
	if err != nil && !errors.As(err, new(*client.Problem)) {
		err = fmt.Errorf("import: %w; a part of the file may be stored; repeat the import", err)
	}
	return found, err
}

// watched reports whether a file is a terminal.
func watched(f *os.File) bool {
	return term.IsTerminal(int(f.Fd()))
}

func printImport(to io.Writer, f client.Import) {
	fmt.Fprintf(to, "lines     %d\ncreated   %d\nupdated   %d\nrejected  %d\ncanceled  %d pushes by opt-outs\n", f.Rows, f.Created, f.Updated, f.Rejected, f.Canceled)
	for _, e := range f.Errors {
		fmt.Fprintf(to, "line %d: %s\n", e.Line, e.Message)
	}
	if more := f.Rejected - int64(len(f.Errors)); more > 0 {
		fmt.Fprintf(to, "and %d more\n", more)
	}
}
