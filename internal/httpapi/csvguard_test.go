package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// TestExport_NextList: an export, in each dialect, is the next audience and the next import, of the same people.
func TestExport_NextList(t *testing.T) {
	b := setup(t)
	var people []string
	var lines strings.Builder
	for i, text := range wildRecipients() {
		if (i < 600 || i%10 == 0) && rest.Unfit(text, 1, pushes.MaxRecipient) == "" && !slices.Contains(people, text) {
			people = append(people, text)
			line, _ := json.Marshal(map[string]string{"recipient": text})
			fmt.Fprintf(&lines, "%s\n", line)
		}
	}
	id := b.campaign(`{"message":{}}`)
	b.upload(id, lines.String(), 200)
	recipients := func(id string) []string {
		return strings.Split(query[string](b, `SELECT string_agg(recipient, E'\n' ORDER BY line) FROM campaign_recipients r JOIN campaigns c ON c.audience_id = r.audience_id WHERE c.id = $1`, id), "\n")
	}
	if got := recipients(id); !slices.Equal(got, people) {
		t.Fatalf("%d of %d people are in the first audience", len(got), len(people))
	}
	for _, dialect := range []string{"", "?dialect=plain", "?dialect=excel"} {
		export := b.send("GET", "/v1/campaigns/"+id+"/export"+dialect, "", "Accept", "text/csv").must(t, 200)
		next := b.campaign(`{"message":{}}`)
		b.upload(next, export.text, 200)
		if got := recipients(next); !slices.Equal(got, people) {
			t.Errorf("%s: the next audience has %d of %d people, such as %q", dialect, len(got), len(people), got[:20])
		}
		b.exec(`DELETE FROM recipients`)
		separator := map[bool]string{true: ";", false: ","}[dialect == "?dialect=excel"]
		list := strings.Replace(export.text, strings.Join(outcomeColumns, separator), "recipient"+strings.Repeat(separator, len(outcomeColumns)-1), 1)
		if r := b.importCSV(list).must(t, 200); r.at(t, "created") != float64(len(people)) {
			t.Errorf("%s: %.300s", dialect, r.text)
		}
		var known []string
		if err := json.Unmarshal([]byte(query[string](b, `SELECT json_agg(recipient)::text FROM recipients`)), &known); err != nil {
			t.Fatal(err)
		}
		if slices.Sort(known); !slices.Equal(known, slices.Sorted(slices.Values(people))) {
			t.Errorf("%s: the import knows %d of %d people", dialect, len(known), len(people))
		}
	}
}

// TestExport_Dialects: CSV for Excel has a mark, semicolons and Windows line ends, wherever there is CSV; and what asks for both CSV and
// NDJSON is told so.
func TestExport_Dialects(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "recipient\n'=1;\"x\n", 200)
	for path, first := range map[string]string{"/v1/sends/export": "push", "/v1/audit-log/export": "id", "/v1/campaigns/" + id + "/export": "recipient"} {
		r := b.send("GET", path+"?dialect=excel", "", "Accept", "*/*").must(t, 200)
		if !strings.HasPrefix(r.text, "\uFEFF"+first+";") || !strings.HasSuffix(r.text, "\r\n") || strings.Contains(strings.ReplaceAll(r.text, "\r\n", ""), "\n") || r.header.Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Errorf("%s: %q", path, r.text)
		}
		if r := b.send("GET", path, "", "Accept", "text/csv").must(t, 200); !strings.HasPrefix(r.text, first+",") || strings.Contains(r.text, "\r") {
			t.Errorf("%s: %q", path, r.text)
		}
		if r := b.send("GET", path+"?dialect=excel", "", "Accept", "application/x-ndjson").must(t, 422, "invalid-request"); !strings.Contains(r.text, `"query.dialect"`) || !strings.Contains(r.text, "send Accept: text/csv") {
			t.Error(r.text)
		}
		b.send("GET", path+"?dialect=word", "", "Accept", "text/csv").must(t, 422, "invalid-request")
	}
	if r := b.send("GET", "/v1/campaigns/"+id+"/export?dialect=excel", "").must(t, 200); !strings.Contains(r.text, "\"'=1;\"\"x\";2;") {
		t.Error(r.text)
	}
	for path, item := range newTestAPI().Document().Paths {
		if get := item.Get; get != nil && get.Responses["200"].Content["text/csv"] != nil && !slices.ContainsFunc(get.Parameters, func(p *huma.Param) bool { return p.Name == "dialect" }) {
			t.Errorf("%s has no dialect", path)
		}
	}
}

// TestExport_SendsGuarded: what strangers have chosen is no formula in the export of attempts. TestSends_Export demands that page tokens,
// some of which begin with a hyphen, stay as they are.
func TestExport_SendsGuarded(t *testing.T) {
	b := setup(t)
	b.send("POST", "/v1/pushes", pushBody("=HYPERLINK(1)", b.in(0), `,"category":"+x"`)).must(t, 201)
	b.attempt("=HYPERLINK(1)", booking.Finish{Outcome: push.Unknown, Error: "@all", Resolution: push.Resolution{Status: push.Failed, Reason: "@all"}})
	records, err := csv.NewReader(strings.NewReader(b.send("GET", "/v1/sends/export", "", "Accept", "text/csv").must(t, 200).text)).ReadAll()
	if err != nil || len(records) != 2 {
		t.Fatal(records, err)
	}
	for column, want := range map[string]string{"recipient": "'=HYPERLINK(1)", "category": "'+x", "error": "'@all"} {
		if got := records[1][slices.Index(records[0], column)]; got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
}

// wildRecipients are texts that a guard can take for something else: all of up to four signs, and some long ones.
func wildRecipients() (all []string) {
	signs := []string{"'", "=", "-", " ", "a", "\u00a0", ";", `"`}
	all = []string{""}
	for from := 0; len(all) < 1+8+64+512+4096; from++ {
		for _, sign := range signs {
			all = append(all, all[from]+sign)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		for range 5 + rnd.IntN(20) {
			text.WriteString(signs[rnd.IntN(len(signs))])
		}
		all = append(all, text.String())
	}
	return all
}

var outcomeColumns = []string{"recipient", "line", "outcome", "push", "send_at", "reason", "rules"}
