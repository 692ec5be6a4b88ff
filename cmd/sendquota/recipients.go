package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sendquota/sendquota/internal/app"
)

type importRecipients struct {
	File    string `arg:"" help:"A file of CSV with a header line, or, if its name ends in .ndjson, .jsonl or .json, of NDJSON. -: standard input."`
	API     string `name:"api" env:"SQ_API" default:"http://127.0.0.1:8080" placeholder:"URL" help:"The address of the API. Default: ${default}, or SQ_API."`
	KeyFile string `placeholder:"FILE" help:"A file with an API key that has the scope recipients:write. Default: the key in SQ_API_KEY."`
	Format  string `enum:"auto,csv,ndjson" default:"auto" help:"csv, ndjson, or auto: by the name of the file."`
	JSON    bool   `name:"json" help:"Print the API's answer."`
}

// Help says what the columns are.
func (importRecipients) Help() string {
	return `The columns of CSV are recipient, time_zone, address.<channel>, opt_out_all, opt_out_channels, opt_out_categories (separated by spaces), limit.<rule> and attribute.<name>.
A line of NDJSON is an object with the recipient and the members of PUT /v1/recipients/{id}. What the header, or a line, does not name is left as it was.

It can be repeated. It needs no database, but the API.`
}

// Validate is called by kong.
func (c importRecipients) Validate() error {
	if u, err := url.Parse(c.API); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--api: %s: must be a URL such as http://127.0.0.1:8080", brief(c.API))
	}
	return nil
}

// imported is the answer of the API.
type imported struct {
	Rows, Created, Updated, Rejected, Canceled int
	Errors                                     []struct {
		Line    int
		Message string
	}
}

func (c importRecipients) Run() error {
	ctx, stop := app.UntilSignal()
	defer stop()
	key, err := c.key()
	if err != nil {
		return exitStatus{err, 2}
	}
	answer, err := c.send(ctx, key)
	if err != nil {
		return exitStatus{err, 2}
	}
	var found imported
	if err := json.Unmarshal(answer, &found); err != nil {
		return exitStatus{fmt.Errorf("the answer of %s is no JSON: is it the API of sendquota?", c.API), 2}
	}
	if c.JSON {
		_, _ = os.Stdout.Write(answer)
	} else {
		found.print(os.Stdout)
	}
	if found.Rejected > 0 {
		return exitStatus{fmt.Errorf("%d of %d lines were rejected", found.Rejected, found.Rows), 1}
	}
	return nil
}

// key reads the API key.
func (c importRecipients) key() (string, error) {
	if c.KeyFile == "" {
		if key := strings.TrimSpace(os.Getenv("SQ_API_KEY")); key != "" {
			return key, nil
		}
		return "", errors.New("there is no API key: set SQ_API_KEY, or name a file with --key-file; make one with: sendquota keys create --tenant NAME --scopes recipients:write")
	}
	text, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// media is the type of the file.
func (c importRecipients) media() string {
	ending := strings.ToLower(filepath.Ext(c.File))
	if c.Format == "ndjson" || c.Format == "auto" && (ending == ".ndjson" || ending == ".jsonl" || ending == ".json") {
		return "application/x-ndjson"
	}
	return "text/csv"
}

// send sends the file, with a progress bar if somebody watches, and returns the answer.
func (c importRecipients) send(ctx context.Context, key string) ([]byte, error) {
	in, size := os.Stdin, int64(-1)
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		if in = file; info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	body := io.NopCloser(io.Reader(in))
	if watched(os.Stderr) {
		bar := progressbar.NewOptions64(size, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true), progressbar.OptionSetDescription("importing"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
		defer bar.Finish()
		body = io.NopCloser(io.TeeReader(in, bar))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(c.API, "/")+"/v1/recipients/import", body)
	if err != nil {
		return nil, err
	}
	if size > 0 {
		req.ContentLength = size
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", c.media())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // the key is for this address alone
	answer, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("import: %w; what was sent may be stored, and the import can be repeated", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, problemOf(answer.Status, text)
	}
	return text, nil
}

// watched reports whether a file is a terminal.
func watched(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// problemOf says what the API answered.
func problemOf(status string, text []byte) error {
	var p struct {
		Detail string
		Errors []struct{ Location, Message string }
	}
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the API answered %s", status)
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "the API answered %s: %s", status, p.Detail)
	if len(p.Errors) > 1 {
		for _, e := range p.Errors {
			fmt.Fprintf(&all, "\n  %s %s", e.Location, e.Message)
		}
	}
	return errors.New(all.String())
}

func (f imported) print(to io.Writer) {
	fmt.Fprintf(to, "lines     %d\ncreated   %d\nupdated   %d\nrejected  %d\ncanceled  %d pushes that are not wanted\n", f.Rows, f.Created, f.Updated, f.Rejected, f.Canceled)
	for _, e := range f.Errors {
		fmt.Fprintf(to, "line %d: %s\n", e.Line, e.Message)
	}
	if more := f.Rejected - len(f.Errors); more > 0 {
		fmt.Fprintf(to, "and %d more\n", more)
	}
}
