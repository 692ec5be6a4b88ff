package httpapi

import (
	"context"
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

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
)

// upload sends an audience, and demands a status.
func (b *bundle) upload(id, text string, status int, problem ...string) reply {
	b.t.Helper()
	media := "text/csv"
	if strings.HasPrefix(text, "{") {
		media = "application/x-ndjson"
	}
	return b.send("PUT", "/v1/campaigns/"+id+"/audience", text, "Content-Type", media).must(b.t, status, problem...)
}

// counts returns the counts of an upload.
func counts(t *testing.T, r reply) string {
	t.Helper()
	all := make([]any, 4)
	for i, name := range []string{"rows", "accepted", "duplicates", "rejected"} {
		all[i] = int(r.at(t, name).(float64))
	}
	return fmt.Sprint(all...)
}

// stored are the lines of the audience that a campaign has.
func (b *bundle) stored(id string) string {
	b.t.Helper()
	return query[string](b, `SELECT coalesce(string_agg(concat_ws('|', line, recipient, address, variables), E'\n' ORDER BY line), '')
		FROM campaign_recipients r JOIN campaigns c ON c.audience_id = r.audience_id WHERE c.id = $1`, id)
}

func encoded(s string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xFEFF)
	for _, c := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, c)
	}
	return string(out)
}

// TestAudience_CSV: lines are read whatever Excel has made of the file, good ones are kept, and faults have the number of their line.
func TestAudience_CSV(t *testing.T) {
	b := setup(t)
	text := strings.Join([]string{
		`recipient,to,First Name,plan,`,
		`a,+4511,"Åse ""x"", y",gold,`,
		`b,,"two`,
		`lines",,`,
		``,
		`a,,again,,`,
		`c,+45,5" tall,,ignored`,
		`,,nobody,,`,
		`d,,too,many,cells,`,
		`e`,
		`"f"x,,,,`,
		"g,,\x00,,",
		"h\x00,,,,",
		strings.Repeat("i", 129) + ",,,,",
		`j,` + strings.Repeat("4", 513) + `,,,`,
		` k , , x , y ,`,
	}, "\n") + "\n"
	want := `2|a|+4511|{"First Name":"Åse \"x\", y","plan":"gold"}
3|b||{"to":"","First Name":"two\nlines","plan":""}
7|c|+45|{"First Name":"5\" tall","plan":""}
16|k||{"to":"","First Name":"x","plan":"y"}`
	semicolons := strings.NewReplacer(",", ";").Replace(strings.Replace(text, `"", y"`, `""§ y"`, 1))
	for name, file := range map[string]string{
		"plain": text, "no end": strings.TrimSuffix(text, "\n"), "windows": strings.ReplaceAll(text, "\n", "\r\n"), "mark": "\uFEFF" + text,
		"semicolons": "\uFEFF" + strings.Replace(semicolons, "§", ",", 1), "tabs": strings.Replace(strings.ReplaceAll(strings.Replace(text, `"", y"`, `""§ y"`, 1), ",", "\t"), "§", ",", 1),
		"utf-16": encoded(strings.ReplaceAll(text, "\n", "\r\n"), binary.LittleEndian), "utf-16 big": encoded(text, binary.BigEndian),
	} {
		t.Run(name, func(t *testing.T) {
			id := b.campaign(`{"message":{}}`)
			r := b.upload(id, file, 200)
			if got := counts(t, r); got != "13 4 1 8" {
				t.Errorf("%s: %s", got, r.text)
			}
			if got := strings.ReplaceAll(b.stored(id), `\r`, ``); got != want {
				t.Errorf("%s, want %s", got, want)
			}
			for _, want := range []string{
				`{"line":8,"message":"recipient: must not be empty"}`, `{"line":9,"message":"has 6 cells, and the header 5"}`, `{"line":10,"message":"has 1 cell, and the header 5"}`,
				`{"line":11,"message":"has text behind a quotation mark that ends a cell"}`, `{"line":12,"message":"First Name: must not have the character U+0000"}`,
				`{"line":13,"message":"recipient: must be printable, but has the character U+0000"}`, `{"line":14,"message":"recipient: must have at most 128 bytes, has 129"}`,
				`{"line":15,"message":"to: must have at most 512 bytes, has 513"}`,
			} {
				if !strings.Contains(r.text, want) {
					t.Errorf("%s lacks %s", r.text, want)
				}
			}
			c := b.send("GET", "/v1/campaigns/"+id, "").must(t, 200)
			if c.at(t, "audience") != 4.0 || c.at(t, "progress", "audience") != 4.0 || c.at(t, "progress", "pending") != 4.0 {
				t.Error(c.text)
			}
			b.send("DELETE", "/v1/campaigns/"+id, "").must(t, 204)
		})
	}
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "sep=;\r\nrecipient;\"a,b,c,d\"\r\nx;1\r\n", 200)
	if got := b.stored(id); got != `3|x||{"a,b,c,d":"1"}` {
		t.Error(got)
	}
}

// TestAudience_NDJSON: a line is an object of scalars.
func TestAudience_NDJSON(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	r := b.upload(id, `{"recipient":"a","to":"+45","n":1.50,"t":true,"x":null,"s":"\u00e9","s":"y"}
{"recipient":"b","to":null}

{"recipient":"a"}
{"to":"x"}
{"recipient":7,"list":[1],"o":{}}
{"recipient":"c","x":"\u0000"}
{"recipient":"d","x":"\ud800"}
{"recipient":"e"} {}
{"recipient":"f"
[]
"text"
{"recipient":""}
{"recipient":"g","to":1}
`+"{\"recipient\":\"\xff\"}\n"+`{"recipient":"h"`+strings.Repeat(`,"x":1`, 500)+"}\n"+`{"recipient":"i","x":"`+strings.Repeat("x", 64<<10)+`"}`, 200)
	if got := counts(t, r); got != "16 2 1 13" {
		t.Errorf("%s: %s", got, r.text)
	}
	if got, want := b.stored(id), `1|a|+45|{"n":1.50,"t":true,"x":null,"s":"\u00e9","s":"y"}`+"\n2|b|"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, want := range []string{
		`{"line":5,"message":"recipient: is required"}`, `{"line":6,"message":"recipient: must be a string; list: must be a string, a number, true, false or null; o: must be a string, a number, true, false or null"}`,
		`{"line":7,"message":"x: must not have the character U+0000"}`, `{"line":8,"message":"x: must be valid Unicode: it has half of a surrogate pair"}`, `{"line":9,"message":"is not valid JSON at line 1, column 20`,
		`{"line":10,"message":"is not valid JSON`, `{"line":11,"message":"must be an object"}`, `{"line":12,"message":"must be an object"}`, `{"line":13,"message":"recipient: must not be empty"}`,
		`{"line":14,"message":"to: must be a string"}`, `{"line":15,"message":"must be valid UTF-8"}`, `{"line":16,"message":"must have at most 500 members, has 501"}`, `{"line":17,"message":"must have at most 65536 bytes"}`,
	} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
}

// TestAudience_Header: the answer lists all errors of a header, and the campaign keeps its audience.
func TestAudience_Header(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "recipient\nkept\n", 200)
	many := "recipient" + strings.Repeat(",x", 600)
	for name, tt := range map[string]struct{ text, want string }{
		"none":            {"", `"location":"body.header","message":"is missing; the column recipient is needed; to is the address, and every other column a variable"`},
		"no recipient":    {"Recipient,name\na,b\n", `"body.header","message":"must have the column recipient, in lower case"`},
		"two recipients":  {"recipient,recipient\na,b\n", `"location":"body.header[1]","message":"must not name a column twice","value":"recipient"`},
		"two others":      {"recipient,name,to, name ,to\na,b\n", `{"location":"body.header[3]","message":"must not name a column twice","value":"name"},{"location":"body.header[4]"`},
		"many":            {many + "\na\n", `"must have at most 500 columns, has 601"`},
		"two million":     {"recipient" + strings.Repeat(",c", 2_000_000) + "\na\n", `"must have at most 65536 bytes"`},
		"wrong quotes":    {"recipient,\"na\"me\na,b\n", `"has text behind a quotation mark that ends a cell"`},
		"open quotes":     {"recipient,\"name\na,b\n", `"has a quotation mark that is not closed"`},
		"NUL":             {"recipient,na\x00me\na,b\n", `"location":"body.header[1]","message":"must not have the character U+0000"`},
		"workbook":        {"PK\x03\x04\x14\x00\x06\x00\x08\x00\xff\n", `"message":"begins like a workbook, such as .xlsx`},
		"no mark":         {"r\x00e\x00c\x00\n\x00", `"message":"is in UTF-16 without a byte order mark`},
		"no mark, big":    {"\x00r\x00e\x00c\x00\n", `"message":"is in UTF-16 without a byte order mark`},
		"no UTF-8":        {"recipient,\xff\na,b\n", `save the list as “CSV UTF-8”`},
		"NDJSON as CSV":   {` {"recipient":"a"}`, `must have the column recipient`},
		"a picture as it": {"\x89PNG\r\n\x1a\n\x00\x00", `"is not in UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			if r := b.upload(id, tt.text, 422, "invalid-request"); !strings.Contains(r.text, tt.want) {
				t.Errorf("%.500s lacks %s", r.text, tt.want)
			}
		})
	}
	b.send("PUT", "/v1/campaigns/"+id+"/audience", `recipient`).must(t, 415, "unsupported-media-type")
	b.send("PUT", "/v1/campaigns/"+id+"/audience?a=1", `recipient`, "Content-Type", "text/csv").must(t, 422, "invalid-request")
	b.upload("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01", "recipient\na\n", 404, "not-found")
	b.send("PUT", "/v1/campaigns/"+id+"/audience", "recipient\nx\n", "Content-Type", "text/csv", "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	if got := b.stored(id); got != `2|kept|` {
		t.Error(got)
	}
	b.upload(id, "recipient\n", 200)
	if c := b.send("GET", "/v1/campaigns/"+id, "").must(t, 200); c.at(t, "audience") != 0.0 {
		t.Error(c.text)
	}
}

// TestAudience_Whole: what breaks off, or finds that the campaign is no draft any more, changes nothing; and what no campaign has is
// swept away.
func TestAudience_Whole(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "recipient\nfirst\n", 200)

	req := httptest.NewRequest("PUT", "/v1/campaigns/"+id+"/audience", &broken{strings.NewReader("recipient\n" + strings.Repeat("a\nb\nc\n", 1000))})
	req.Header.Set("Content-Type", "text/csv")
	req.Header.Set("Authorization", "Bearer "+b.key)
	rec := httptest.NewRecorder()
	b.api.ServeHTTP(rec, req)
	if rec.Code != 400 || !strings.Contains(rec.Body.String(), "were read, and the campaign keeps the audience that it has") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if got := b.stored(id); got != `2|first|` {
		t.Error(got)
	}

	// The one that ends last counts, and both are whole.
	svc := campaignsOf(b.store, b.now)
	at := func(name string) *campaign.Upload {
		u, err := svc.Upload(t.Context(), push.Caller{Tenant: b.tenant}, query[[16]byte](b, `SELECT id FROM campaigns WHERE id = $1`, id))
		if err != nil {
			t.Fatal(name, err)
		}
		return u
	}
	slow := at("slow")
	b.upload(id, "recipient\nsecond\n", 200)
	if p, err := slow.End(t.Context()); err != nil || p.Size != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	b.upload(id, "recipient\nthird\n", 200)

	// While it was under way, the campaign was started.
	late := at("late")
	b.exec(`UPDATE campaigns SET status = 'starting', started_at = now()`)
	if _, err := late.End(t.Context()); err == nil || err.Error() != "the campaign is starting; it can only be given an audience while it is a draft" {
		t.Error(err)
	}
	late.Drop()
	if r := b.upload(id, "recipient\nfourth\n", 409, "campaign-state"); r.at(t, "campaign", "status") != "starting" {
		t.Error(r.text)
	}
	if got := b.stored(id); got != `2|third|` {
		t.Error(got)
	}

	pass := func() {
		t.Helper()
		for n := 1; n > 0; {
			var err error
			if n, err = b.store.SweepUploads(context.WithoutCancel(t.Context()), 0, 5000); err != nil {
				t.Fatal(err)
			}
		}
	}
	pass()
	if got := query[string](b, `SELECT string_agg(recipient, ' ') || (SELECT ' ' || count(*) FROM campaign_uploads) FROM campaign_recipients`); got != "third 1" {
		t.Error(got)
	}

	// An upload that stands still for long is given up, and says so.
	b.exec(`UPDATE campaigns SET status = 'draft', started_at = NULL`)
	frozen := at("frozen")
	b.exec(`UPDATE campaign_uploads SET alive_until = clock_timestamp() - interval '1 second' WHERE alive_until < 'infinity'`)
	pass()
	if _, err := frozen.End(t.Context()); err == nil {
		t.Error("an upload that was given up has ended")
	}
	// A deleted campaign takes its audience along, and an upload that is under way.
	gone := at("gone")
	b.send("DELETE", "/v1/campaigns/"+id, "").must(t, 204)
	if _, err := gone.End(t.Context()); err == nil {
		t.Error("an upload of a deleted campaign has ended")
	}
	pass()
	if n := query[int](b, `SELECT (SELECT count(*) FROM campaign_recipients) + (SELECT count(*) FROM campaign_uploads)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestAudience_Many: very many lines are stored in bounded memory; the answer lists the first hundred errors. A tenant has a bound.
func TestAudience_Many(t *testing.T) {
	b := setup(t)
	n := 10_000
	if many := os.Getenv("MANY_LINES"); many != "" { // to measure
		n, _ = strconv.Atoi(many)
	}
	id := b.campaign(`{"message":{}}`)
	var text strings.Builder
	text.WriteString("recipient,to,first_name,plan\n")
	for i := range n {
		switch {
		case i%10 == 9:
			fmt.Fprintf(&text, "user-%d,+45%08d,Aiko,gold\n", i-1, i)
		case i%10 == 8 || i%10 == 7:
			fmt.Fprintf(&text, "user-%d,+45%08d,Aiko,gold\n", i, i)
		case i%10 == 6:
			fmt.Fprintf(&text, "user-%d,+45%08d,Aiko\n", i, i)
		default:
			fmt.Fprintf(&text, "user-%d,+45%08d,\"Aiko, Mrs\",gold\n", i, i)
		}
	}
	file := text.String()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	peak, stop := uint64(0), make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc)
			}
		}
	}()
	began := time.Now()
	r := b.upload(id, file, 200)
	took := time.Since(began)
	close(stop)
	<-watched
	if got, want := counts(t, r), fmt.Sprint(n, n-n/5, n/10, n/10); got != want || len(r.at(t, "errors").([]any)) != 100 {
		t.Errorf("%s, want %s", got, want)
	}
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	} else {
		t.Logf("%d lines in %s; the heap grew by %d MiB", n, took, grown>>20)
	}
	if got := query[int](b, `SELECT count(*) FROM campaign_recipients`); got != n-n/5 {
		t.Errorf("%d lines", got)
	}
}

// TestAudience_Bound: an audience with more recipients than allowed changes nothing.
func TestAudience_Bound(t *testing.T) {
	b := setup(t)
	small := campaign.New(b.store, b.now, campaign.Config{MaxPerTenant: 1, MaxAudience: 3, Channels: []string{"push"}, MaxHorizon: time.Hour})
	api := New(b.service(b.store, testPolicy()), b.store, Config{RequestTimeout: patience, Campaigns: small})
	id := b.campaign(`{"message":{}}`)
	put := func(text string) reply {
		return ask(t, api, "PUT", "/v1/campaigns/"+id+"/audience", text, "Authorization", "Bearer "+b.key, "Content-Type", "text/csv")
	}
	put("recipient\na\nb\na\nc\n").must(t, 200)
	if r := put("recipient\na\nb\nc\nd\n").must(t, 422, "invalid-request"); !strings.Contains(r.text, `"location":"body","message":"an audience has at most 3 recipients"`) {
		t.Error(r.text)
	}
	if got := b.stored(id); got != "2|a|\n3|b|\n5|c|" {
		t.Error(got)
	}
}

// TestAudience_Bytes: one audience, and all audiences of a tenant, have a bound of stored bytes; the operator can set another one for a tenant.
func TestAudience_Bytes(t *testing.T) {
	b := setup(t)
	small := campaign.New(b.store, b.now, campaign.Config{
		MaxPerTenant: 9, MaxAudience: 1000, MaxAudienceBytes: 200, TenantBytes: 400, Channels: []string{"push"}, MaxHorizon: time.Hour,
	})
	api := New(b.service(b.store, testPolicy()), b.store, Config{RequestTimeout: patience, Campaigns: small, Now: b.now})
	put := func(id, text string) reply {
		return ask(t, api, "PUT", "/v1/campaigns/"+id+"/audience", text, "Authorization", "Bearer "+b.key, "Content-Type", "text/csv")
	}
	first := b.campaign(`{"message":{}}`)
	// The file is short, and what is kept of it is not: each line has the name of its variable.
	wide := "recipient," + strings.Repeat("n", 100) + "\na,1\nb,2\n"
	if r := put(first, wide).must(t, 422, "invalid-request"); !strings.Contains(r.text, `"message":"an audience has at most 200 bytes, with the names of the variables in each line"`) {
		t.Error(r.text)
	}
	fits := "recipient\n" + strings.Repeat("x", 120) + "\n"
	put(first, fits).must(t, 200)
	put(b.campaign(`{"message":{}}`), fits).must(t, 200)
	put(b.campaign(`{"message":{}}`), fits).must(t, 200)
	last := b.campaign(`{"message":{}}`)
	full := put(last, fits).must(t, 409, "tenant-cap-exceeded")
	if full.at(t, "cap") != "audience_bytes" || full.at(t, "limit") != 400.0 || full.at(t, "used") != 480.0 {
		t.Error(full.text)
	}
	if got := b.stored(last); got != "" {
		t.Error(got)
	}
	cap := func() string {
		r := ask(t, api, "GET", "/v1/caps", "", "Authorization", "Bearer "+b.key).must(t, 200)
		of := r.body["audience_bytes"].(map[string]any)
		return fmt.Sprint(of["used"], " of ", of["limit"], " ", of["complete"])
	}
	if got := cap(); got != "360 of 400 true" {
		t.Errorf("GET /v1/caps says %s", got)
	}
	put(first, "recipient\nanna\n").must(t, 200) // what it replaces counts until it is removed
	put(last, fits).must(t, 409, "tenant-cap-exceeded")
	for range 3 {
		if _, err := b.store.SweepUploads(t.Context(), 0, 1000); err != nil {
			t.Fatal(err)
		}
	}
	put(last, "recipient\n"+strings.Repeat("x", 100)+"\n").must(t, 200)

	none := 0
	if _, err := b.store.CapTenant(t.Context(), b.name, accounts.CapChange{AudienceBytes: &accounts.NewCap{Value: &none}}); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	api = New(b.service(b.store, testPolicy()), b.store, Config{RequestTimeout: patience, Campaigns: small, Now: b.now})
	put(b.campaign(`{"message":{}}`), fits).must(t, 200)
	if got := cap(); !strings.HasSuffix(got, " of <nil> true") {
		t.Errorf("GET /v1/caps says %s", got)
	}
}
