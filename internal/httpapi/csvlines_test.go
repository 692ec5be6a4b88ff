package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// badLinesOf are the numbers of the lines that an upload has rejected.
func badLinesOf(t *testing.T, r reply) (lines []int) {
	t.Helper()
	for _, e := range r.at(t, "errors").([]any) {
		lines = append(lines, int(e.(map[string]any)["line"].(float64)))
	}
	return lines
}

// TestLists_OneReader: an audience and an import read the same lines of the same list, count each of them, and tell the same bad ones.
func TestLists_OneReader(t *testing.T) {
	b := setup(t)
	var long strings.Builder
	for i := 2; i <= 5001; i++ {
		mark := map[bool]string{true: `"`}[i == 10 || i == 4001]
		fmt.Fprintf(&long, "u%d,%sName\n", i, mark)
	}
	for name, row := range map[string]struct {
		text string
		want string // rows, good, rejected, and the bad lines
	}{
		"two marks":              {"u1,\"Ann\nu2,Ben\nu3,Cy\nu4,\"Di\n", "4 2 2 [2 5]"},
		"two marks of thousands": {long.String(), "5000 4998 2 [10 4001]"},
		"a mark in an id":        {"\"u1,Ann\nu2,Ben\nu3\",Cy\nu4,Di\n", "4 3 1 [2]"},
		"a cell of two lines":    {"u1,\"Ann\nof York\"\nu2,Ben\n", "2 2 0 []"},
		"separators alone":       {"u1,Ann\n,\n,,,,\n \"\" , \n\nu2,Ben\n,x\n", "3 2 1 [8]"},
		"shortened numbers":      {"4.91702E+11,a\n\"4,91702E+11\",b\n+4.9e+11,c\n4917,d\nE+11,e\n1E-05,f\n", "6 3 3 [2 3 4]"},
		"guards":                 {"'+4917,a\n''=x,b\n'tHooft,c\n", "3 3 0 []"},
	} {
		t.Run(name, func(t *testing.T) {
			b.exec(`DELETE FROM recipients`)
			id := b.campaign(`{"message":{}}`)
			audience := b.upload(id, "recipient,attribute.name\n"+row.text, 200)
			imported := b.importCSV("recipient,attribute.name\n"+row.text).must(t, 200)
			for good, r := range map[string]reply{"accepted": audience, "created": imported} {
				if got := fmt.Sprint(r.at(t, "rows"), r.at(t, good), r.at(t, "rejected"), badLinesOf(t, r)); got != row.want {
					t.Errorf("%s: %s, want %s: %.400s", good, got, row.want, r.text)
				}
			}
			if stored := query[int](b, `SELECT count(*) FROM campaign_recipients c JOIN campaigns USING (audience_id) JOIN recipients r ON r.recipient = c.recipient WHERE campaigns.id = $1`, id); float64(stored) != audience.at(t, "accepted") {
				t.Errorf("both know %d people", stored)
			}
		})
	}
}

// TestLists_Shortened: an id or an address that a spreadsheet has shortened is an error of its line, which explains what to do.
func TestLists_Shortened(t *testing.T) {
	b := setup(t)
	const what = "is 4.91702E+11, a number that a spreadsheet has shortened: its last digits are lost. Format the column as text"
	id := b.campaign(`{"message":{}}`)
	if r := b.upload(id, "recipient,to\n4.91702E+11,\nu2,4.91702E+11\n", 200); !strings.Contains(r.text, `"recipient: `+what) || !strings.Contains(r.text, `"to: `+what) {
		t.Error(r.text)
	}
	if r := b.importCSV("recipient,address.sms\n4.91702E+11,\nu2,4.91702E+11\n").must(t, 200); !strings.Contains(r.text, `"recipient: `+what) || !strings.Contains(r.text, `"address.sms: `+what) {
		t.Error(r.text)
	}
}

// TestLists_Guards: the guard of an export is taken off every cell, of the address and of the variables too.
func TestLists_Guards(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "recipient;to;note\r\n'+4512345678;'+4512345678;'=1\r\n", 200)
	if got := b.stored(id); got != `2|+4512345678|+4512345678|{"note":"=1"}` {
		t.Error(got)
	}
	b.importCSV("recipient,address.sms,attribute.note\n'+45,'+4512345678,'=1\n").must(t, 200)
	if r := b.send("GET", "/v1/recipients/+45", "").must(t, 200); !strings.Contains(r.text, `"sms":"+4512345678"`) || !strings.Contains(r.text, `"note":"=1"`) {
		t.Error(r.text)
	}
}

// TestLists_Encoding: a list in Windows-1252 is refused as a whole, with its first such line and what to do. One of UTF-16 with half a
// character has a bad line.
func TestLists_Encoding(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	b.upload(id, "recipient\nkept\n", 200)
	for text, line := range map[string]string{"recipient,attribute.name\nu1,Ann\nu2,M\xFCller\nu3,Cy\n": "line 3 is", "recipient,attribute.name\nu1,\"x\nu2,\xFC\"\n": "line 3 is", "recipient,attribute.Gr\xF6\xDFe\nu1,1\n": "is"} {
		for _, r := range []reply{b.upload(id, text, 422, "invalid-request"), b.importCSV(text).must(t, 422, "invalid-request")} {
			if !strings.Contains(r.text, line+" not in UTF-8, so that letters such as ä or é would be lost: save the list as “CSV UTF-8”, and send it again") {
				t.Errorf("%q: %s", text, r.text)
			}
		}
	}
	if r := b.importCSV("recipient\nu1\n\xFC\n").must(t, 422); !strings.Contains(r.text, "1 lines above it were read, and may be stored") {
		t.Error(r.text)
	}
	if got := b.stored(id); got != `2|kept|` {
		t.Error(got)
	}
	half := "\xFF\xFE" + strings.Join(strings.Split("recipient\nu1\nu2", ""), "\x00") + "\x00\x00\xD8\n\x00u\x003\x00"
	for _, r := range []reply{b.upload(id, half, 200), b.importCSV(half).must(t, 200)} {
		if got := badLinesOf(t, r); !slices.Equal(got, []int{3}) || r.at(t, "rows") != 3.0 {
			t.Error(r.text)
		}
	}
}

// TestLists_Headings: an invisible character in a heading is named, with all else that is wrong; white space around one, and columns
// without one, are left out.
func TestLists_Headings(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{}}`)
	for heading, code := range map[string]string{
		"\u200Brecipient": "U+200B", "recipient\u200B": "U+200B", "reci\uFEFFpient": "U+FEFF", "\uFEFF\uFEFFrecipient": "U+FEFF", "reci\u00A0pient": "U+00A0", "\u200Drecipient": "U+200D", "reci\u00ADpient": "U+00AD", "\u3164recipient": "U+3164",
	} {
		text := heading + ",time_zone,time_zone\nu1,,\n"
		for _, r := range []reply{b.upload(id, text, 422, "invalid-request"), b.importCSV(text).must(t, 422, "invalid-request")} {
			for _, want := range []string{`"location":"body.header[0]","message":"has the invisible character ` + code + `; delete the heading`, `"body.header[2]","message":"must not name a column twice"`} {
				if !strings.Contains(r.text, want) {
					t.Errorf("%q: %s lacks %s", heading, r.text, want)
				}
			}
			if strings.Contains(r.text, "unknown column") || strings.Contains(r.text, "must have the column") {
				t.Errorf("%q: %s", heading, r.text)
			}
		}
	}
	text := "\u00A0recipient\u00A0,,attribute.نام\u200Cخانوادگی,\u3000,attribute.氏\u3000名\nu1,x,a,\x00,b\n"
	if r := b.upload(id, text, 200); r.at(t, "accepted") != 1.0 {
		t.Error(r.text)
	}
	if got, want := b.stored(id), "2|u1||{\"attribute.نام\u200cخانوادگی\":\"a\",\"attribute.氏　名\":\"b\"}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if r := b.importCSV("recipient,,time_zone,\nu1,x,UTC,\n").must(t, 200); r.at(t, "created") != 1.0 {
		t.Error(r.text)
	}
}

// TestImport_Words: words in a cell are separated by commas, semicolons and white space, and no category is called as a separator.
func TestImport_Words(t *testing.T) {
	b := setup(t)
	for cell, want := range map[string]string{
		"marketing news": `["marketing","news"]`, `"marketing, news"`: `["marketing","news"]`, "marketing;news": `["marketing","news"]`, `"marketing,news;marketing ,; "`: `["marketing","news"]`,
		`" , ; "`: `[]`, "marketing": `["marketing"]`, "Marketing NEWS marketing": `["marketing","news"]`,
	} {
		b.importCSV("recipient,opt_out_categories\na,"+cell+"\n").must(t, 200)
		if r := b.send("GET", "/v1/recipients/a", "").must(t, 200); !strings.Contains(r.text, `"categories":`+want) {
			t.Errorf("%s: %s", cell, r.text)
		}
	}
	b.importCSV("recipient;opt_out_channels\nb;push, sms\n").must(t, 200)
	if r := b.send("GET", "/v1/recipients/b", "").must(t, 200); !strings.Contains(r.text, `"channels":["push","sms"]`) {
		t.Error(r.text)
	}
}

// TestImport_Names: the names of categories, channels and rules in CSV are stored like in all other calls: a recipient who has opted out of Marketing is sent
// no marketing.
func TestImport_Names(t *testing.T) {
	b := setup(t)
	b.importCSV("recipient,opt_out_categories,opt_out_channels,address.Push,limit.Per-Day\na,\"Marketing, MARKETING\",SMS,token,3\n").must(t, 200)
	if r := b.send("GET", "/v1/recipients/a", "").must(t, 200); !strings.Contains(r.text, `"addresses":{"push":"token"},"opt_outs":{"all":false,"channels":["sms"],"categories":["marketing"]},"limits":[{"rule":"per-day","limit":3}]`) {
		t.Error(r.text)
	}
	b.send("POST", "/v1/pushes", pushBody("a", b.in(0), `,"category":"marketing"`)).must(t, 409, "opted-out")
	if r := b.importCSV("recipient,address.push,address.PUSH\na,1,2\n").must(t, 422, "invalid-request"); !strings.Contains(r.text, `"body.header[2]","message":"must not name a column twice"`) {
		t.Error(r.text)
	}
}
