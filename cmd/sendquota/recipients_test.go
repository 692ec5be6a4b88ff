package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportRecipients: the file reaches the API unchanged, with the key; the exit status reports the result.
func TestImportRecipients(t *testing.T) {
	var got http.Request
	var body string
	status, answer := 200, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = *r, string(text)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	csv, lines, key := file("a.csv", "recipient\na\n"), file("a.ndjson", `{"recipient":"a"}`), file("key", "sq_secret\n")
	for _, row := range []struct {
		name, file, answer string
		status, exit       int
		media, says        string
	}{
		{"stored", csv, `{"rows":1,"created":1,"updated":0,"rejected":0,"errors":[]}`, 200, 0, "text/csv", ""},
		{"lines", lines, `{"rows":1,"created":1,"updated":0,"rejected":0,"errors":[]}`, 200, 0, "application/x-ndjson", ""},
		{"rejected", csv, `{"rows":2,"created":1,"updated":0,"rejected":1,"errors":[{"line":3,"message":"bad"}]}`, 200, 1, "text/csv", "1 of 2 lines"},
		{"header", csv, `{"type":"urn:sendquota:problem:invalid-request","detail":"2 errors","errors":[{"location":"body.header[0]","message":"unknown"},{"location":"b","message":"m"}]}`, 422, 2, "text/csv", "body.header[0] unknown"},
		{"no api", csv, `hello`, 404, 2, "text/csv", "404"},
		{"no json", csv, `hello`, 200, 2, "text/csv", "no JSON"},
	} {
		t.Run(row.name, func(t *testing.T) {
			status, answer = row.status, row.answer
			err := importRecipients{File: row.file, apiFlags: apiFlags{API: server.URL + "/", KeyFile: key}, Format: "auto"}.Run()
			var coded exitStatus
			if errors.As(err, &coded); (err == nil) != (row.exit == 0) || err != nil && (coded.code != row.exit || !strings.Contains(err.Error(), row.says)) {
				t.Errorf("%v with %d, want %d", err, coded.code, row.exit)
			}
			want, _ := os.ReadFile(row.file)
			if body != string(want) || got.Header.Get("Authorization") != "Bearer sq_secret" || got.Header.Get("Content-Type") != row.media || got.URL.Path != "/v1/recipients/import" || got.ContentLength != int64(len(want)) {
				t.Errorf("the API got %q, %v", body, got.Header)
			}
		})
	}
	t.Setenv("SENDQUOTA_API_KEY", "")
	for _, c := range []importRecipients{{File: csv, apiFlags: apiFlags{API: server.URL}}, {File: filepath.Join(dir, "none"), apiFlags: apiFlags{API: server.URL, KeyFile: key}}, {File: csv, apiFlags: apiFlags{API: "http://127.0.0.1:1", KeyFile: key}}} {
		var coded exitStatus
		if err := c.Run(); !errors.As(err, &coded) || coded.code != 2 {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (importRecipients{apiFlags: apiFlags{API: "127.0.0.1:8080"}}).Validate(); err == nil {
		t.Error("an address without a scheme is taken")
	}
}
