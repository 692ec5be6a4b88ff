package console

import (
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// TestCampaign_UploadCall: what the drawer shows makes, in a shell, the audience that the page has sent, of the list that the user has.
func TestCampaign_UploadCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	id := strings.TrimPrefix(at, "/console/campaigns/")
	fields := func(names ...string) (all []string) {
		for i, name := range names {
			n := string(rune('0' + i))
			as := []string{"recipient", "variable", "nothing"}[i]
			all = append(all, "header["+n+"]", name, "as["+n+"]", as, "name["+n+"]", "it's")
		}
		return all
	}
	plain := "recipient,it's\na,Anna\n"
	page := b.follow(b.upload(at+"/audience", plain, fields("recipient", "it's")...))
	page.has(t, 200, "--data-binary @your-list.csv")
	if strings.Contains(page.Body, "printf") {
		t.Error("a list that is sent as it is gets another heading")
	}
	if _, err := b.api.Campaigns.PutAudience(t.Context(), id, strings.NewReader(plain), client.CSV); err != nil {
		t.Error(err)
	}
	list := "Kunde;Vorname;intern\na;Änne;x\nb;\"Bo; B\";y"
	wide := []byte{0xFF, 0xFE}
	for _, c := range utf16.Encode([]rune(list)) {
		wide = append(wide, byte(c), byte(c>>8))
	}
	for name, file := range map[string]string{
		"plain": list, "with a mark": "\uFEFF" + list, "of Excel": "sep=;\r\n" + strings.ReplaceAll(list, "\n", "\r\n"),
		"UTF-16": string(wide), "old line ends": strings.ReplaceAll(list, "\n", "\r"), "a heading of two lines": "\"Kunde\n\"" + strings.TrimPrefix(list, "Kunde"),
	} {
		page := b.follow(b.upload(at+"/audience", file, fields("Kunde", "Vorname", "intern")...))
		page.has(t, http.StatusOK, "2 recipients are in the audience", "--data-binary @-", "your-list.csv")
		line := regexp.MustCompile(`(?s)(\{ printf [^|]*?(?:\|[^|]*?)*?; \}) \|\ncurl`).FindStringSubmatch(html.UnescapeString(page.Body))
		if line == nil {
			t.Fatalf("%s: the drawer lacks the line:\n%s", name, page.text())
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "your-list.csv"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", line[1])
		shell.Dir = dir
		made, err := shell.Output()
		if err != nil {
			t.Fatalf("%s: %s: %v", name, line[1], err)
		}
		opened, err := lists.OpenCSV(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := io.ReadAll(opened.Renamed([]string{"recipient", "it's", ""})); string(want) != string(made) {
			t.Errorf("%s: %s makes %q, and the console sends %q", name, line[1], made, want)
		}
		all, failed := b.api.Campaigns.PutAudience(t.Context(), id, strings.NewReader(string(made)), client.CSV)
		if failed != nil || all.Accepted != 2 || all.Rejected != 0 {
			t.Errorf("%s: %s makes %q: %+v, %v", name, line[1], made, all, failed)
		}
	}
}

// TestCampaign_OtherEncoding: a list in another encoding is refused as a whole, wherever its first such letter is.
func TestCampaign_OtherEncoding(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	choice := []string{"header[0]", "a", "as[0]", "recipient", "header[1]", "b", "as[1]", "variable", "name[1]", "b"}
	b.upload(at+"/audience", "a,b\n1,2\n", choice...)
	b.upload(at+"/audience/columns", "a,b\nx,y\nu,M\xFCller\n").has(t, 422, "line 3 is not in UTF-8", "CSV UTF-8")
	b.upload(at+"/audience/columns", "a,Gr\xF6\xDFe\n1,2\n").has(t, 422, "the first line is not in UTF-8", "CSV UTF-8")
	b.upload(at+"/audience/columns", "a,b\n"+strings.Repeat("é", 64<<10)).has(t, 200, "Match the columns")
	lines := strings.Repeat("u,é\n", 50_000)
	b.upload(at+"/audience", "a,b\n"+strings.ReplaceAll(lines, "u", "x")+"v,M\xFCller\n", choice...).has(t, 422, "line 50002 is not in UTF-8", "Nothing was changed")
	b.upload(at+"/audience", "a,b\nx,y\nv,M\xC3", choice...).has(t, 422, "line 3 is not in UTF-8")
	b.get(at+"/audience").has(t, 200, "has <strong>1</strong> recipient.")
	choice[7] = "time_zone"
	b.upload(at+"/audience", "a,b\n1,UTC\n2,\xFC\n", choice...).has(t, 422, "time zones above that line may already be saved")
}

// TestCampaign_ListFaultNames: the summary names the fields of a list as people read them, and leads to them.
func TestCampaign_ListFaultNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	for want, page := range map[string]reply{
		`<a href="#f-look">List (CSV)</a>`:             b.upload(at+"/audience/columns", "PK\x03\x04"),
		`<a href="#f-columns">Columns of the list</a>`: b.upload(at+"/audience", "a\n1\n", "header[0]", "a", "as[0]", "variable", "name[0]", "a"),
		`<a href="#f-as%5b1%5d">Column “Vorname”</a>`:  b.upload(at+"/audience", "a,Vorname\n1,2\n", "header[0]", "a", "as[0]", "recipient", "header[1]", "Vorname", "as[1]", "variable", "name[1]", ""),
		`<a href="#f-file">Same file</a>`:              b.upload(at+"/audience", "b\n1\n", "header[0]", "a", "as[0]", "recipient"),
	} {
		if !strings.Contains(page.summary(), want) {
			t.Errorf("the summary lacks %s:\n%s", want, page.summary())
		}
	}
}
