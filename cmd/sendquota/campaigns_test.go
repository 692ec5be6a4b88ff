package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestShowCampaign_Recipients: a file of recipients is for a spreadsheet, unless a flag or the name of the file chooses another format.
func TestShowCampaign_Recipients(t *testing.T) {
	var asked http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/export") {
			asked = *r
			_, _ = io.WriteString(w, "the export")
			return
		}
		_, _ = io.WriteString(w, `{"id":"c"}`)
	}))
	defer server.Close()
	t.Setenv("SENDQUOTA_API_KEY", "sq_secret")
	for _, row := range []struct {
		file          string
		args          []string
		query, accept string
	}{
		{"a.csv", nil, "dialect=excel", "text/csv"}, {"b.csv", []string{"--dialect=plain"}, "dialect=plain", "text/csv"}, {"c.ndjson", nil, "", "application/x-ndjson"},
	} {
		var c showCampaign
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), row.file)
		if _, err := parser.Parse(append(row.args, "c", "--recipients", file)); err != nil {
			t.Fatal(err)
		}
		c.API = server.URL
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "the export" || asked.URL.RawQuery != row.query || asked.Header.Get("Accept") != row.accept {
			t.Errorf("%s has %q, by %s of %s, %v", row.file, text, asked.URL, asked.Header.Get("Accept"), err)
		}
	}
}
