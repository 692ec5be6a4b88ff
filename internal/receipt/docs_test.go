package receipt

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the codes into the documentation")

// docsTables returns the tables of docs/channels.md, by their names there.
func docsTables() map[string]string {
	return map[string]string{
		"receipts-twilio":   docsTable(twilioStatuses(), "any other status") + docsTable(twilioCodes(), ""),
		"receipts-ses":      docsTable(sesCodes(), "any other event"),
		"receipts-sendgrid": docsTable(sendgridCodes(), "any other event"),
		"receipts-mailgun":  docsTable(mailgunCodes(), "any other event"),
		"receipts-postmark": docsTable(postmarkCodes(), "any other event"),
		"receipts-dsn":      docsTable(actions(), "any other action") + docsTable(feedbackTypes(), ""),
		"receipts-status":   docsTable(statusCodes(), ""),
	}
}

// The tables of docs/channels.md list the codes in use.
func TestDocs_Codes(t *testing.T) {
	const path = "../../docs/channels.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for name, want := range docsTables() {
		begin, end := "<!-- "+name+": written by `go test ./internal/receipt -run Docs -update` -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(page, begin)
		table, after, foundEnd := strings.Cut(rest, end)
		if !found || !foundEnd {
			t.Fatalf("%s has no place for the codes of %s", path, name)
		}
		if table != want && !*update {
			t.Errorf("the codes of %s in %s are out of date; run: go test ./internal/receipt -run Docs -update\ngot:\n%s\nwant:\n%s", name, path, table, want)
		}
		page = before + begin + want + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// kindWords are the kinds in the words of the docs, in the order of the tables.
var kindWords = []struct {
	kind  kind
	words string
}{
	{delivered, "`delivered`"}, {hard, "`bounced`, hard"}, {soft, "`bounced`, soft"}, {complained, "`complained`"},
	{stopped, "`undelivered`, as after STOP"}, {undelivered, "`undelivered`"}, {dropComplained, "`undelivered`, a complaint"},
	{dropUnsubscribed, "`undelivered`, unsubscribed"}, {unsubscribed, "unsubscribed"}, {ignored, "none"},
}

// docsTable lists codes by kind. others describes all other codes, which have no receipt; "": no row.
func docsTable(codes map[string]meaning, others string) string {
	var b strings.Builder
	b.WriteString("\n| code | says | receipt |\n|---|---|---|\n")
	for _, row := range kindWords {
		for _, code := range slices.Sorted(maps.Keys(codes)) {
			if m := codes[code]; m.kind == row.kind {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, m.text, row.words)
			}
		}
	}
	if others != "" {
		fmt.Fprintf(&b, "| %s | | none |\n", others)
	}
	b.WriteString("\n")
	return b.String()
}

// Every kind has words, and every meaning a text.
func TestDocs_Kinds(t *testing.T) {
	for k := ignored; k <= dropComplained; k++ {
		if !slices.ContainsFunc(kindWords, func(row struct {
			kind  kind
			words string
		}) bool {
			return row.kind == k
		}) {
			t.Errorf("the kind %d has no words", k)
		}
	}
	for name, codes := range map[string]map[string]meaning{
		"statuses": twilioStatuses(), "twilio": twilioCodes(), "ses": sesCodes(), "sendgrid": sendgridCodes(), "mailgun": mailgunCodes(), "postmark": postmarkCodes(), "status": statusCodes(), "actions": actions(), "feedback": feedbackTypes(),
	} {
		for code, m := range codes {
			if m.text == "" || !codeForm.MatchString(code) || len(code) > maxCode {
				t.Errorf("%s: %q is %+v", name, code, m)
			}
		}
	}
}
