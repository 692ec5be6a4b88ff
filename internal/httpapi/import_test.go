package httpapi

import (
	"encoding/binary"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
)

func (b *bundle) importCSV(text string) reply {
	b.t.Helper()
	return b.send("POST", "/v1/recipients/import", text, "Content-Type", "text/csv")
}

// TestImport_CSV: every column is read, whatever Excel has made of the file; faults have the number of their line, and good lines
// are kept.
func TestImport_CSV(t *testing.T) {
	b := setup(t)
	lines := []string{
		`recipient,time_zone,address.sms,opt_out_all,opt_out_channels,opt_out_categories,limit.per-day,attribute.name,attribute.note`,
		`a,Asia/Tokyo,+4511,TRUE,sms push,"news offers",20,"Åse ""x"", y","two`,
		`lines"`,
		``,
		`b,Europe/Berln,,,,,,,`,
		`c,,,,,,,5" tall,`,
		`d,,,,fax,,x,,`,
		`,UTC,,,,,,,`,
		`a,UTC,,,,,,last,`,
		`e,,,maybe,,,,,,,,`,
		`f`,
	}
	text := strings.Join(lines, "\n") + "\n"
	utf16le := func(s string, order binary.AppendByteOrder) string {
		out := order.AppendUint16(nil, 0xFEFF)
		for _, c := range utf16.Encode([]rune(s)) {
			out = order.AppendUint16(out, c)
		}
		return string(out)
	}
	// With semicolons, the comma in a cell needs no care.
	semicolons := strings.NewReplacer(",", ";").Replace(strings.Replace(text, `"", y"`, `""§ y"`, 1))
	for name, file := range map[string]string{
		"plain": text, "no end": strings.TrimSuffix(text, "\n"), "windows": strings.ReplaceAll(text, "\n", "\r\n"), "mark": "\uFEFF" + text,
		"semicolons": "\uFEFF" + strings.Replace(semicolons, "§", ",", 1), "tabs": strings.Replace(strings.ReplaceAll(strings.Replace(text, `"", y"`, `""§ y"`, 1), ",", "\t"), "§", ",", 1),
		"utf-16": utf16le(strings.ReplaceAll(text, "\n", "\r\n"), binary.LittleEndian), "utf-16 big": utf16le(text, binary.BigEndian), "sep": "sep=,\r\n" + text,
	} {
		t.Run(name, func(t *testing.T) {
			b.exec(`DELETE FROM recipients`)
			r := b.importCSV(file).must(t, 200)
			if counts := fmt.Sprint(r.at(t, "rows"), r.at(t, "created"), r.at(t, "updated"), r.at(t, "rejected")); counts != "8 2 1 5" {
				t.Errorf("%s: %s", counts, r.text)
			}
			first := 0
			if name == "sep" {
				first = 1
			}
			wrong := map[int]string{}
			for _, one := range r.at(t, "errors").([]any) {
				e := one.(map[string]any)
				wrong[int(e["line"].(float64))-first] = e["message"].(string)
			}
			for line, message := range map[int]string{5: "nearest name is Europe/Berlin", 7: "limit.per-day: must be a whole number", 8: "recipient: must not be empty", 10: "cells", 11: "has 1 cell, and the header 9"} {
				if !strings.Contains(wrong[line], message) {
					t.Errorf("line %d: %q, want %q", line, wrong[line], message)
				}
			}
			a := b.send("GET", "/v1/recipients/a", "").must(t, 200)
			if a.at(t, "time_zone") != "UTC" || a.at(t, "attributes", "name") != "last" || a.at(t, "opt_outs", "all") != false || len(a.at(t, "limits").([]any)) != 0 {
				t.Errorf("the last line counts: %s", a.text)
			}
			if c := b.send("GET", "/v1/recipients/c", "").must(t, 200); c.at(t, "attributes", "name") != `5" tall` {
				t.Error(c.text)
			}
		})
	}
	b.exec(`DELETE FROM recipients`)
	b.importCSV(strings.Join(lines[:3], "\n")).must(t, 200)
	a := b.send("GET", "/v1/recipients/a", "").must(t, 200)
	want := `"time_zone":"Asia/Tokyo","addresses":{"sms":"+4511"},"opt_outs":{"all":true,"channels":["sms","push"],"categories":["news","offers"]},"limits":[{"rule":"per-day","limit":20}],` +
		`"attributes":{"name":"Åse \"x\", y","note":"two\nlines"}`
	if !strings.Contains(a.text, want) {
		t.Errorf("%s, want %s", a.text, want)
	}
}

// TestImport_LeavesTheRest: what the header, or a line, does not name stays as it was.
func TestImport_LeavesTheRest(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"time_zone":"UTC","opt_outs":{"all":true},"attributes":{"x":1},"limits":[{"rule":"r","limit":1}],"addresses":{"sms":"1"}}`).must(t, 201)
	b.importCSV("recipient,time_zone\na,Asia/Tokyo\n").must(t, 200)
	b.importCSV("recipient,opt_out_channels\na,sms\n").must(t, 200)
	ndjson := func(lines ...string) {
		b.send("POST", "/v1/recipients/import", strings.Join(lines, "\n"), "Content-Type", "application/x-ndjson").must(t, 200)
	}
	ndjson(`{"recipient":"a","limits":[]}`)
	ndjson(`{"recipient":"a","addresses":{"push":"2"}}`)
	got := b.send("GET", "/v1/recipients/a", "").must(t, 200)
	want := `"time_zone":"Asia/Tokyo","addresses":{"push":"2"},"opt_outs":{"all":true,"channels":["sms"],"categories":[]},"limits":[],"attributes":{"x":1}`
	if !strings.Contains(got.text, want) {
		t.Errorf("%s, want %s", got.text, want)
	}
}

// TestImport_Twice: of an id that comes twice the last line alone counts: nothing that the earlier one says is stored, and what it
// does not want is not canceled.
func TestImport_Twice(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/a", `{"time_zone":"UTC","attributes":{"x":1}}`).must(t, 201)
	id := b.send("POST", "/v1/pushes", pushBody("a", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	r := b.send("POST", "/v1/recipients/import", `{"recipient":"a","opt_outs":{"all":true},"time_zone":"Asia/Tokyo"}
{"recipient":"b","limits":[{"rule":"r","limit":1}]}
{"recipient":"a","addresses":{"push":"2"}}
{"recipient":"b","attributes":{"y":2}}`, "Content-Type", "application/x-ndjson").must(t, 200)
	if counts := fmt.Sprint(r.at(t, "rows"), r.at(t, "created"), r.at(t, "updated"), r.at(t, "rejected"), r.at(t, "canceled")); counts != "4 1 3 0 0" {
		t.Errorf("%s: %s", counts, r.text)
	}
	var far []string // the two lines are in transactions of their own
	for i := range importedAtOnce + 1 {
		far = append(far, fmt.Sprintf(`{"recipient":"other-%d"}`, i))
	}
	far[importedAtOnce-1], far[importedAtOnce] = `{"recipient":"c","time_zone":"Asia/Tokyo"}`, `{"recipient":"c","limits":[]}`
	b.send("POST", "/v1/recipients/import", strings.Join(far, "\n"), "Content-Type", "application/x-ndjson").must(t, 200)
	for who, want := range map[string]string{
		"c": `"time_zone":null`,
		"a": `"time_zone":"UTC","addresses":{"push":"2"},"opt_outs":{"all":false,"channels":[],"categories":[]},"limits":[],"attributes":{"x":1}`,
		"b": `"time_zone":null,"addresses":{},"opt_outs":{"all":false,"channels":[],"categories":[]},"limits":[],"attributes":{"y":2}`,
	} {
		if got := b.send("GET", "/v1/recipients/"+who, "").must(t, 200); !strings.Contains(got.text, want) {
			t.Errorf("%s, want %s", got.text, want)
		}
	}
	if p := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); p.at(t, "status") != "scheduled" {
		t.Error(p.text)
	}
}

// TestImport_NDJSON: lines are read as the body of a PUT is, and opt-outs cancel.
func TestImport_NDJSON(t *testing.T) {
	b := setup(t)
	id := b.send("POST", "/v1/pushes", pushBody("a", b.in(time.Hour), "")).must(t, 201).at(t, "id").(string)
	r := b.send("POST", "/v1/recipients/import", `{"recipient":"a","opt_outs":{"channels":["push"]}}
{"recipient":"b","time_zone":"Asia/Tokyo"

[]
{"recipient":"c","other":1,"addresses":{"fax":"1"}}
{"recipient":"d"} {}
`+"{\"recipient\":\"\xff\"}\n"+`{"recipient":"e"}`, "Content-Type", "application/x-ndjson; charset=utf-8").must(t, 200)
	if counts := fmt.Sprint(r.at(t, "rows"), r.at(t, "created"), r.at(t, "updated"), r.at(t, "rejected"), r.at(t, "canceled")); counts != "7 2 0 5 1" {
		t.Errorf("%s: %s", counts, r.text)
	}
	for _, want := range []string{`{"line":2,"message":"is not valid JSON`, `{"line":4,"message":"must be an object"}`, `{"line":5,"message":"other: unexpected property; addresses.fax: unknown channel`, `{"line":6,`, `{"line":7,"message":"must be valid UTF-8"}`} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
	if p := b.send("GET", "/v1/pushes/"+id, "").must(t, 200); p.at(t, "status") != "canceled" {
		t.Error(p.text)
	}
}

// TestImport_ColumnsInFaults: the error of a cell appears once, with the name of its column.
func TestImport_ColumnsInFaults(t *testing.T) {
	b := setup(t)
	long := strings.Repeat("x", pushes.MaxTo+1)
	r := b.importCSV("recipient,address.sms,opt_out_channels,time_zone\na,"+long+",sms fax,Europe/Berln\n").must(t, 200)
	message := r.at(t, "errors", 0, "message").(string)
	for _, want := range []string{"address.sms: must have at most 512 bytes", "opt_out_channels: unknown channel", "time_zone: there is no time zone"} {
		if strings.Count(message, want) != 1 {
			t.Errorf("%s lacks %s", message, want)
		}
	}
	if strings.Contains(message, "addresses") || strings.Contains(message, "opt_outs") {
		t.Error(message)
	}
}

// TestImport_Header: the answer lists all errors of a header, and nothing is stored.
func TestImport_Header(t *testing.T) {
	b := setup(t)
	r := b.importCSV("id,address.fax,limit.A b,attribute.,time_zone,time_zone,opt_out\na,b\n").must(t, 422, "invalid-request")
	for _, want := range []string{`"body.header[0]"`, `"body.header[1]","message":"unknown channel; the channels are: push, sms"`, `"body.header[2]"`, `"body.header[3]"`, `"body.header[5]","message":"must not name a column twice"`,
		`"body.header[6]"`, `must have the column recipient`} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
	b.importCSV("\xff\xff\n").must(t, 422, "invalid-request")
	b.send("POST", "/v1/recipients/import", "", "Content-Type", "text/csv").must(t, 422, "invalid-request")
	b.send("POST", "/v1/recipients/import", `{}`).must(t, 415, "unsupported-media-type")
	b.send("POST", "/v1/recipients/import?a=1", "recipient\n", "Content-Type", "text/csv").must(t, 422, "invalid-request")
	b.importCSV("recipient\n").must(t, 200)
	if n := query[int](b, `SELECT count(*) FROM recipients`); n != 0 {
		t.Errorf("%d recipients", n)
	}
}

// TestImport_LongLine: a line of a megabyte is a fault of that line, and so is a quotation mark that is not closed.
func TestImport_LongLine(t *testing.T) {
	b := setup(t)
	long := strings.Repeat("x", 1<<20)
	for name, text := range map[string]string{
		"long": "recipient,attribute.a\na,1\nb," + long + "\nc,3\n", "long in quotes": "recipient,attribute.a\na,1\nb,\"" + long + "\"\nc,3\n",
		"not closed": "recipient,attribute.a\na,1\nb,\"x\nc,3", "not closed, and long": "recipient,attribute.a\na,1\nb,\"x\nc,3\n" + strings.Repeat("\n", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			b.exec(`DELETE FROM recipients`)
			r := b.importCSV(text).must(t, 200)
			if counts := fmt.Sprint(r.at(t, "rows"), r.at(t, "created"), r.at(t, "rejected")); counts != "3 2 1" || !strings.Contains(r.text, `"errors":[{"line":3,`) {
				t.Errorf("%s: %.300s", counts, r.text)
			}
		})
	}
}

// TestImport_Many: a hundred thousand lines are stored in bounded memory; the answer lists the first hundred errors.
func TestImport_Many(t *testing.T) {
	b := setup(t)
	n := 5000
	if many := os.Getenv("MANY_LINES"); many != "" { // to measure
		n, _ = strconv.Atoi(many)
	}
	var text strings.Builder
	text.WriteString("recipient,time_zone,address.sms,opt_out_categories,limit.per-day,attribute.plan\n")
	for i := range n {
		zone := "Europe/Berlin"
		if i%10 == 9 {
			zone = fmt.Sprint("Nowhere/", i)
		}
		fmt.Fprintf(&text, "user-%d,%s,+45%08d,marketing,20,gold\n", i, zone, i)
	}
	for round, want := range []string{"created", "updated"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		r := b.importCSV(text.String()).must(t, 200)
		runtime.ReadMemStats(&after)
		t.Logf("%d lines in %s, %d MB allocated in all", n, time.Since(began), (after.TotalAlloc-before.TotalAlloc)>>20)
		if r.at(t, want) != float64(n-n/10) || r.at(t, "rejected") != float64(n/10) || len(r.at(t, "errors").([]any)) != 100 {
			t.Errorf("%d: %.300s", round, r.text)
		}
	}
	if got := query[int](b, `SELECT count(*) FROM recipients WHERE time_zone = 'Europe/Berlin' AND attributes->>'plan' = 'gold'`); got != n-n/10 {
		t.Errorf("%d recipients", got)
	}
}

// TestImport_Broken: a body that breaks off is an error, and lines before it may be stored.
func TestImport_Broken(t *testing.T) {
	b := setup(t)
	req := httptest.NewRequest("POST", "/v1/recipients/import", &broken{strings.NewReader("recipient\na\nb")})
	req.Header.Set("Content-Type", "text/csv")
	req.Header.Set("Authorization", "Bearer "+b.key)
	rec := httptest.NewRecorder()
	b.api.ServeHTTP(rec, req)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "could not be read") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// broken fails where its text ends.
type broken struct{ *strings.Reader }

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		err = fmt.Errorf("the connection is gone")
	}
	return n, err
}
