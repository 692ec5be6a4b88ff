package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// upload sends a form with a file, whose fields come first.
func (b *bundle) upload(path, file string, fields ...string) reply {
	b.t.Helper()
	return b.send(b.uploading(path, file, fields...))
}

// part sends a file as a script does, which wants a part of a page.
func (b *bundle) part(path, file string) reply {
	b.t.Helper()
	r := b.uploading(path, file)
	r.Header.Set("HX-Request", "true")
	return b.send(r)
}

func (b *bundle) uploading(path, file string, fields ...string) *http.Request {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		if err := form.WriteField(fields[i], fields[i+1]); err != nil {
			b.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("file", "list.csv")
	if err == nil {
		_, err = part.Write([]byte(file))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(b.t.Context(), "POST", path, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// draftPath makes a draft by the form, and returns where its pages are.
func (b *bundle) draftPath(fields ...string) string {
	b.t.Helper()
	made := b.post("/console/campaigns/new", append([]string{"channel", "push", "shown_for", "push"}, fields...)...)
	b.follow(made).has(b.t, 200, "Saved. Next: the audience")
	return strings.TrimSuffix(made.Header.Get("Location"), "/audience")
}

// pass has the runner carry campaigns on.
func (b *bundle) pass() {
	b.t.Helper()
	for range 10 {
		if _, err := b.runner.Pass(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestCampaign_Story takes a list to a campaign that runs, by forms alone; what was done in a step is there when the browser is
// opened again.
func TestCampaign_Story(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.get("/console/campaigns").has(t, 200, "No campaigns yet.", "/console/campaigns/new")
	b.get("/console/campaigns/new?channel=sms").has(t, 200, `name="message.body"`, `name="shown_for" value="sms"`, "<option selected>sms</option>")
	other := b.post("/console/campaigns/new", "channel", "sms", "shown_for", "push", "message.title", "Hi", "message.body", "There")
	if other.has(t, 200, "There", `name="shown_for" value="sms"`); strings.Contains(other.Body, "message.title") {
		t.Error("a text message has a title")
	}
	b.get("/console/campaigns").has(t, 200, "No campaigns yet.")
	at := b.draftPath("name", "Winter sale", "category", "marketing", "message.title", "Hi {{ first_name | default: 'there' }}", "message.body", "New in {{ city }}", "message.more", `{"data": {"screen": "sale"}}`)
	b.get(at).has(t, 200, "This is a draft", "Winter sale", `{"screen":"sale"}`)
	b.get(at+"/message").has(t, 200, "New in {{ city }}", `"screen": "sale"`)

	list := "sep=;\r\nCustomer ID;First name;city;Zone;internal\r\nanna;Anna;Tokyo;Asia/Tokyo;x\r\nben;;Aarhus;;y\r\ncarl;\"A very long name; with more\";Leeds;Europe/London;z\r\nanna;Again;Oslo;;\r\n"
	columns := b.upload(at+"/audience/columns", list)
	columns.has(t, 200, "Customer ID", "Anna · – · A very long name; with more", "first_name")
	for _, want := range []string{`name="as\[0\]"[^>]*>.*?<option value="recipient" selected`, `name="as\[1\]"[^>]*>.*?<option value="variable" selected`, `name="as\[3\]"[^>]*>.*?<option value="time_zone" selected`} {
		if !regexp.MustCompile(want).MatchString(columns.Body) {
			t.Errorf("the columns are not taken as %s", want)
		}
	}
	if part := b.part(at+"/audience/columns", list); part.Status != 200 || strings.Contains(part.Body, "<html") || !strings.Contains(part.Body, "Upload list") {
		t.Errorf("a script gets %d %s", part.Status, part.Body)
	}
	if part := b.part(at+"/audience/columns", "PK\x03\x04"); part.Status != 200 || !strings.Contains(part.Body, "save it as CSV") {
		t.Errorf("a script gets %d %s", part.Status, part.Body)
	}
	choice := []string{"header[0]", "Customer ID", "as[0]", "recipient", "name[0]", "", "header[1]", "First name", "as[1]", "variable", "name[1]", "first_name",
		"header[2]", "city", "as[2]", "variable", "name[2]", "city", "header[3]", "Zone", "as[3]", "time_zone", "name[3]", "", "header[4]", "internal", "as[4]", "nothing", "name[4]", "internal"}
	b.follow(b.upload(at+"/audience", list, choice...)).has(t, 200, "3 recipients are in the audience", "1 row repeats a recipient of an earlier row", "Hi Anna", "New in Aarhus", "Hi there", "Longest values", "line 3")
	if anna, err := b.api.Recipients.Get(t.Context(), "anna"); err != nil || anna.TimeZone != "Asia/Tokyo" {
		t.Errorf("anna's zone is %q, %v", anna.TimeZone, err)
	}
	if _, err := b.api.Recipients.Get(t.Context(), "ben"); err == nil {
		t.Error("something is kept of ben, whose zone is empty")
	}
	b.get(at+"/preview?recipient=carl").has(t, 200, "For this recipient", "Hi A very long name; with more")
	b.get(at+"/preview?recipient=nobody").has(t, 404, "not in the audience")

	start := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	b.follow(b.post(at+"/when?tz=utc", "when", "at", "send_at", start.Format("2006-01-02T15:04:05"), "spread", "", "on_conflict", "defer", "latest", "", "expires_after", "4h")).
		has(t, 200, "on time", `<div class="figure">3</div>on time`)
	b.get(at+"/when?tz=utc").has(t, 200, start.Format("2006-01-02T15:04:05"), `value="at" checked`, `value="4h"`)
	b.follow(b.post(at+"/when?tz=utc", "when", "local", "local_time", start.Add(50*time.Hour).Format("2006-01-02T15:04:05"), "time_zone", "Africa/Nairobi")).has(t, 200, "Nothing has been scheduled yet")
	b.get(at).has(t, 200, start.Add(50*time.Hour).Format("2006-01-02 15:04:05"), "Africa/Nairobi (+03:00)", `<span class="distance">in 2 d`)
	b.follow(b.post(at+"/when?tz=utc", "when", "at", "send_at", start.Format("2006-01-02T15:04:05"), "spread", "", "on_conflict", "defer", "latest", "", "expires_after", "4h")).has(t, 200, "on time")
	b.submit("anna", time.Until(start))
	b.get(at+"/simulation").has(t, 200, `<div class="figure">1</div>later than planned`, "per-minute", `<svg class="histogram"`, "up to 1 min", "Better times", "within a day from the time that you chose", "Use this time")
	b.post(at+"/start", "recipients", "4").has(t, 422, "the campaign has 3 recipients", "Nothing was started", `value="4"`)
	started := b.post(at+"/start", "recipients", " 3 ")
	b.pass()
	b.follow(started).has(t, 200, "Campaign scheduled. No message is sent before its time.", "Winter sale", "status-scheduled", "0</strong> of 3 sent", "3 to go", "0 % sent or failed", "hx-sse:connect")
	b.get(at+"/recipients?outcome=scheduled").has(t, 200, "ben", "carl", "/console/pushes/")
	export := b.get(at + "/export?outcome=scheduled")
	export.has(t, 200, "\uFEFFrecipient;line;outcome", "ben;4;scheduled")
	if !strings.Contains(export.Header.Get("Content-Disposition"), "recipients.csv") {
		t.Error(export.Header)
	}
	b.follow(b.get(at+"/message")).has(t, 200, "has started and cannot be changed")
	b.get("/console/campaigns?status=running").has(t, 200, "Winter sale", "status-scheduled", "selected>scheduled or sending<")
}

// TestCampaign_PauseAndCancel: what a cancel gives back is said before and after it.
func TestCampaign_PauseAndCancel(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	one := b.startCampaign("Sale", time.Now().Add(time.Hour), "recipient\na\nb\nc\n")
	at := "/console/campaigns/" + one.ID
	b.follow(b.post(at+"/pause")).has(t, 200, "Campaign paused")
	b.pass()
	paused := b.get(at)
	if paused.has(t, 200, "status-paused", "Resume"); strings.Contains(paused.Body, ">Pause<") {
		t.Error("what is paused can be paused")
	}
	b.follow(b.post(at+"/resume")).has(t, 200, "Campaign resumed", "status-scheduled")
	b.get(at+"/cancel").has(t, 200, "3</strong> recipients will not get the message", "3</strong> of them are scheduled", "0</strong> were sent it already")
	b.follow(b.post(at+"/cancel")).has(t, 200, "3 recipients do not get it; 3 scheduled messages are being removed")
	b.pass()
	b.get(at).has(t, 200, "status-canceled", "The campaign was canceled: 3 recipients do not get it", "3 skipped", `value="0"`, "0 % sent or failed")
	b.get(at+"/cancel").has(t, 200, "cannot be canceled")
	b.post(at+"/pause").has(t, 409)
	if page := b.get(at); strings.Contains(page.Body, "hx-sse:connect") {
		t.Error("a campaign that is over is followed")
	}
}

// TestCampaign_BadLines: lines that cannot be used are listed, and given as a file; the others are taken.
func TestCampaign_BadLines(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	choice := []string{"header[0]", "id", "as[0]", "recipient", "name[0]", "", "header[1]", "tz", "as[1]", "time_zone", "name[1]", ""}
	page := b.upload(at+"/audience", "id,tz\na,Mars/X\nb\n,UTC\nc,UTC\n", choice...)
	page.has(t, 200, "2 recipients are in the audience", "Rows that cannot be used: 2 of 4", "has 1 cell, and the header 2", "Time zones that cannot be saved: 1 of 2", "time_zone: ", `name="text" value="b"`, `name="text" value=",UTC"`, `name="text" value="a,Mars/X"`, "Download them as CSV", "# zones.csv has the first line recipient,time_zone, and of your list the columns 'id' and 'tz'")
	file := b.post(at+"/audience/bad-lines", "all", "20000", "line", "3", "message", "has 1 cell, and the header 2", "text", "b", "line", "4", "message", "=recipient: must not be empty", "text", "=1,UTC")
	file.has(t, 200, "\uFEFFline;message;the row in your list\r\n3;has 1 cell, and the header 2;b\r\n4;'=recipient: must not be empty;'=1,UTC\r\n", "These are the first 2 of 20 000 bad rows.")
	b.get(at+"/preview").has(t, 200, "line 2", "line 5")
	bad := strings.Repeat(",x\n", 150)
	b.upload(at+"/audience", "id,tz\na,UTC\n"+bad, choice...).has(t, 200, "Download the first 100 of 150 as CSV", `name="all" value="150"`)
}

// TestCampaign_ListFaults: what is wrong with a list as a whole is said at its place, and the audience stays as it was.
func TestCampaign_ListFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	choice := func(as ...string) (fields []string) {
		for i, a := range as {
			fields = append(fields, fmt.Sprintf("header[%d]", i), string(rune('a'+i)), fmt.Sprintf("as[%d]", i), a, fmt.Sprintf("name[%d]", i), "x")
		}
		return fields
	}
	b.upload(at+"/audience", "a,b\n1,2\n", choice("recipient", "variable")...)
	for name, row := range map[string]struct {
		file   string
		fields []string
		says   string
	}{
		"no recipient":      {"a,b\n", choice("variable", "nothing"), "choose which column is the recipient"},
		"two recipients":    {"a,b\n", choice("recipient", "recipient"), "another column is used for this already"},
		"two of a name":     {"a,b,c\n", choice("recipient", "variable", "variable"), "another column is used for this already"},
		"another file":      {"a,c\n", choice("recipient", "variable"), "other columns"},
		"not looked at":     {"a,b\n", nil, "show the columns of the file first"},
		"a workbook":        {"PK\x03\x04 and more", choice("recipient"), "save it as CSV"},
		"an empty file":     {"", choice("recipient"), "is missing"},
		"too long a header": {strings.Repeat("a", 70_000), choice("recipient"), "must have at most 65536 bytes"},
	} {
		page := b.upload(at+"/audience", row.file, row.fields...)
		if page.Status != 422 || !strings.Contains(page.Body, row.says) {
			t.Errorf("%s: %d %s", name, page.Status, page.text())
		}
	}
	b.upload(at+"/audience/columns", "PK\x03\x04").has(t, 422, "save it as CSV")
	b.post(at+"/audience", "as[0]", "recipient").has(t, 422, "choose the file")
	var many []string
	for range 2000 + 1 {
		many = append(many, "x", "y")
	}
	b.upload(at+"/audience", "a\n", many...).has(t, 413, "A file can have 500 columns")
	b.get(at+"/audience").has(t, 200, "has <strong>1</strong> recipient.")
}

// TestCampaign_MessageFaults: what is wrong stands at its field, and what was typed stays.
func TestCampaign_MessageFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post("/console/campaigns/new", "channel", "push", "shown_for", "push", "name", "Sale", "message.title", "Hi {{ first", "message.more", "[1").
		has(t, 422, `id="fault-message.more"`, "Hi {{ first", `value="Sale"`)
	page := b.post("/console/campaigns/new", "channel", "push", "shown_for", "push", "message.title", "Hi {{ first", "message.body", "There", "category", strings.Repeat("x", 65))
	page.has(t, 422, `id="fault-message.title"`, `id="fault-category"`, "There")
	at := b.draftPath("message.title", "Hi")
	b.post(at+"/when", "when", "at", "send_at", "soon", "latest", "2020-01-01T00:00", "spread", "x").has(t, 422, `id="fault-send_at"`, `value="soon"`, `value="x"`)
	b.post(at+"/when", "when", "at", "send_at", "2020-01-01T00:00", "spread", "90h").has(t, 422, `id="fault-send_at"`, `id="fault-spread"`)
	b.post(at+"/when", "when", "local", "local_time", "", "time_zone", "Mars/X").has(t, 422, `id="fault-local_time"`)
	b.post(at+"/when", "when", "local", "local_time", time.Now().Add(48*time.Hour).Format("2006-01-02T15:04"), "time_zone", "Mars/X").has(t, 422, `id="fault-time_zone"`, `value="Mars/X"`, `value="local" checked`)
	soon := time.Now().Add(48 * time.Hour).Format("2006-01-02T15:04")
	b.post(at+"/when", "when", "start", "send_at", soon).has(t, 422, `id="fault-send_at"`, "Same time for everyone", `value="`+soon+`"`)
	b.post(at+"/when", "when", "at", "send_at", soon, "local_time", soon).has(t, 422, `id="fault-local_time"`)
	for _, choice := range []string{"at", "start"} { // what the draft had does not mind another choice
		if kept := b.post(at+"/when", "when", choice, "send_at", soon); kept.Status != 303 {
			t.Errorf("%s: %d %s", choice, kept.Status, kept.text())
		}
	}
	b.get(at+"/simulation").has(t, 409)
	b.post(at+"/start", "recipients", "0").has(t, 422)
	b.follow(b.post(at+"/delete")).has(t, 200, "Draft deleted")
	b.get(at).has(t, 404)
}

// TestCampaign_Roles: who may only look is offered nothing else, and refused it.
func TestCampaign_Roles(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := b.draftPath("message.title", "Hi")
	one := b.startCampaign("Sale", time.Now().Add(time.Hour), "recipient\na\n")
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopeCampaignsRead}, "viewer"
	for _, path := range []string{"/console/campaigns", at, "/console/campaigns/" + one.ID} {
		page := b.get(path)
		page.has(t, 200)
		for _, offer := range []string{"New campaign", "Delete draft", `/pause"`, `/cancel"`} {
			if strings.Contains(page.Body, offer) {
				t.Errorf("%s offers a viewer %s", path, offer)
			}
		}
	}
	b.get(at+"/preview").has(t, 200)
	for _, path := range []string{at + "/message", at + "/start", "/console/campaigns/" + one.ID + "/pause", "/console/campaigns/" + one.ID + "/cancel"} {
		b.post(path).has(t, 403, "Your role, viewer")
	}
}

// TestCampaign_Editor: who may draft and not send is offered all steps but the last.
func TestCampaign_Editor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Caller.Scopes, b.who.Role = user.Editor.Scopes(), "editor"
	at := b.draftPath("message.title", "Hi")
	b.follow(b.upload(at+"/audience", "a\n1\n", "header[0]", "a", "as[0]", "recipient")).has(t, 200, "1 recipient is in the audience")
	page := b.get(at + "/simulation")
	if page.has(t, 200, "Edit time"); strings.Contains(page.Body, "Continue to start") || strings.Contains(page.Body, at+`/start"`) {
		t.Error("an editor is offered the start")
	}
	b.post(at+"/start", "recipients", "1").has(t, 403, "Your role, editor")
}

// TestCampaign_BetterStart: a better start, as the simulation has found it, becomes the time of the draft.
func TestCampaign_BetterStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	b.post(at+"/send-at", "send_at", "2020-01-01T10:00:00Z").has(t, 422, "<strong>This cannot be done.</strong></p>", "<li>send at: must not be more than a minute in the past")
	soon := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Minute)
	moved := b.post(at+"/send-at", "send_at", soon.Format(time.RFC3339))
	if moved.Status != 303 || !strings.HasSuffix(moved.Header.Get("Location"), "/simulation") {
		t.Errorf("%d %s", moved.Status, moved.Header)
	}
	b.get(at+"?tz=utc").has(t, 200, soon.Format("2006-01-02 15:04:05"))
}

// TestCampaign_LargeList: a list goes through whole, with its time zones; one that is refused ends the import of those, too.
func TestCampaign_LargeList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	var list strings.Builder
	list.WriteString("a,b,c\n")
	const lines = 4000 // more than a mebibyte
	for i := range lines {
		fmt.Fprintf(&list, "user-%d,Europe/Berlin,%s\n", i, strings.Repeat("some text that makes the line longer ", 8))
	}
	choice := func(blank string) []string {
		return []string{"header[0]", "a", "as[0]", "recipient", "header[1]", "b", "as[1]", "time_zone", "header[2]", "c", "as[2]", "variable", "name[2]", blank}
	}
	b.upload(at+"/audience", list.String(), choice("no\x00name")...).has(t, 422, `id="fault-header[2]"`)
	b.follow(b.upload(at+"/audience", list.String(), choice("text")...)).has(t, 200, "4 000 recipients")
	last, err := b.api.Recipients.Get(t.Context(), fmt.Sprintf("user-%d", lines-1))
	if err != nil || last.TimeZone != "Europe/Berlin" {
		t.Errorf("the last has the zone %q, %v", last.TimeZone, err)
	}
}

// TestCampaign_Unchanged: what a message has besides its texts is the same after the draft got another name.
func TestCampaign_Unchanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	data := `{"id":12345678901234567890,"link":"https://example.com/?a=1&b=<2>","share":1.50}`
	at := b.draftPath("message.title", "Hi", "message.more", `{"data":`+data+`}`)
	page := b.get(at + "/message")
	more := regexp.MustCompile(`(?s)<textarea id="f-more"[^>]*>(.*?)</textarea>`).FindStringSubmatch(page.Body)
	if more == nil || !strings.Contains(more[1], `"https://example.com/?a=1&b=<2>"`) || !strings.Contains(more[1], ": 12345678901234567890,") {
		t.Fatalf("the field has %v", more)
	}
	b.follow(b.post(at+"/message", "name", "Another", "channel", "push", "shown_for", "push", "message.title", "Hi", "message.more", more[1])).has(t, 200, "Saved.")
	var stored struct {
		Message struct{ Data json.RawMessage }
	}
	if err := b.api.Get(t.Context(), "/v1/campaigns/"+path.Base(at), nil, &stored); err != nil {
		t.Fatal(err)
	}
	if text := strings.NewReplacer(`\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(stored.Message.Data)); text != data {
		t.Errorf("the message has %s, want %s", text, data)
	}
	b.get(at).has(t, 200, `"id":12345678901234567890`)
}

// TestCampaign_WithoutMessage: an empty message is allowed, and warned of before it is sent.
func TestCampaign_WithoutMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath()
	b.upload(at+"/audience", "id\na\n", "header[0]", "id", "as[0]", "recipient", "name[0]", "")
	const warning = "The message is empty"
	for _, step := range []string{"/preview", "/start"} {
		page := b.get(at + step)
		if page.has(t, 200, warning); strings.Contains(page.Body, "written, for") {
			t.Errorf("%s: a message that is not there is written", step)
		}
	}
	b.follow(b.post(at+"/message", "channel", "push", "shown_for", "push", "message.more", `{"data":{}}`)).has(t, 200, "written, for push")
	for _, step := range []string{"/preview", "/start"} {
		if page := b.get(at + step); strings.Contains(page.Body, warning) {
			t.Errorf("%s: warns of a message that is there", step)
		}
	}
}

// TestCampaign_WithoutName shows a campaign without a name in lists, choices and sentences.
func TestCampaign_WithoutName(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	first := b.startCampaign("", at, "recipient\nanna\n")
	second := b.startCampaign("", at.Add(30*time.Second), "recipient\nanna\n")
	choice := ">Campaign without a name, created " + second.CreatedAt.UTC().Format("2006-01-02 15:04:05")
	b.get("/console/why").has(t, 200, choice)
	page := b.get("/console/why?recipient=anna&campaign=" + second.ID)
	page.has(t, 200, "anna did not get the campaign without a name because", ">Campaign</a>", "Send its message to anna then", `/console/campaigns/`+first.ID+`">Campaign without a name<`)
	page.has(t, 200, "/console/recipients/anna?at="+url.QueryEscape(second.SendAt.UTC().Format(time.RFC3339))) // of the axis
	b.get("/console/why?recipient=nobody&campaign="+second.ID).has(t, 200, "nobody is not in the audience of the campaign without a name")
	draft := path.Base(b.draftPath("message.title", "Hi", "category", "news"))
	b.get("/console/schedules/new").has(t, 200, `<option value="`+draft+`">Campaign without a name, created `)
	made := b.post("/console/schedules/new", "cron", "0 9 * * MON", "time_zone", "UTC", "campaign", draft, "once", "one")
	b.follow(made).has(t, 200, ">Campaign without a name</a>, each time as a new one", "<pre tabindex=\"0\">Hi</pre>", "<dt>Category</dt><dd>news</dd>", "<dt>If a limit is reached</dt><dd>skipped</dd>")
}
