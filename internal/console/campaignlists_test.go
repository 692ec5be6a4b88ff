package console

import (
	"errors"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestCampaign_GuardedList: what the console exports is its next list: of the same people, with their time zones.
func TestCampaign_GuardedList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	id := strings.TrimPrefix(at, "/console/campaigns/")
	people := []string{"+4512345678", "'=1", "'tHooft", "a  b", " c", "d "}
	var lines strings.Builder
	for _, one := range people {
		lines.WriteString(`{"recipient":"` + one + "\"}\n")
	}
	if _, err := b.api.Campaigns.PutAudience(t.Context(), id, strings.NewReader(lines.String()), client.NDJSON); err != nil {
		t.Fatal(err)
	}
	export := b.get(at + "/export")
	export.has(t, 200, "\uFEFFrecipient;")
	list := strings.ReplaceAll(export.Body, ";pending;", ";Asia/Tokyo;")
	if columns := b.upload(at+"/audience/columns", list); !strings.Contains(columns.text(), "+4512345678 · '=1 · 'tHooft") {
		t.Errorf("the first lines are shown with guards:\n%s", columns.text())
	}
	choice := []string{"header[0]", "recipient", "as[0]", "recipient", "header[1]", "line", "as[1]", "nothing", "header[2]", "outcome", "as[2]", "time_zone"}
	for i, name := range []string{"push", "send_at", "reason", "rules"} {
		n := string(rune('3' + i))
		choice = append(choice, "header["+n+"]", name, "as["+n+"]", "nothing")
	}
	b.follow(b.upload(at+"/audience", list, choice...)).has(t, 200, "6 recipients are in the audience")
	for _, one := range people {
		known, err := b.api.Recipients.Get(t.Context(), one)
		if err != nil || known.TimeZone != "Asia/Tokyo" {
			t.Errorf("%q is in the zone %q, %v", one, known.TimeZone, err)
		}
	}
	for r, err := range b.api.Campaigns.ListRecipients(t.Context(), id, client.CampaignRecipientsOptions{}) {
		if err != nil || !strings.Contains(lines.String(), `"`+r.Recipient+`"`) {
			t.Errorf("%q is in the audience, %v", r.Recipient, err)
		}
	}
	if _, err := b.api.Recipients.Get(t.Context(), "a b"); err == nil || !errors.As(err, new(*client.Problem)) {
		t.Errorf("another recipient has a time zone: %v", err)
	}
}

// TestCampaign_StrayMarks: a quotation mark that is not closed costs its line alone: of the list, and of the time zones in it.
func TestCampaign_StrayMarks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.draftPath("message.title", "Hi")
	choice := []string{"header[0]", "id", "as[0]", "recipient", "header[1]", "First\r\nname", "as[1]", "variable", "name[1]", "first_name", "header[2]", "tz", "as[2]", "time_zone"}
	page := b.upload(at+"/audience", "id,\"First\nname\",tz\nmark-1,\"Ann,UTC\nmark-2,Ben,UTC\nmark-3,Cy,UTC\nmark-4,\"Di,UTC\n,,\n\"mark-5,Ed,UTC\nmark-6\",Fy,UTC\n", choice...)
	page.has(t, 200, "3 recipients are in the audience", "Rows that cannot be used: 3 of 6", `name="line" value="3"`, `name="line" value="6"`, `name="line" value="8"`)
	for person, zone := range map[string]string{"mark-1": "", "mark-2": "UTC", "mark-3": "UTC", "mark-4": "", `mark-6"`: "UTC"} {
		if known, _ := b.api.Recipients.Get(t.Context(), person); known.TimeZone != zone {
			t.Errorf("%s is in %q, want %q", person, known.TimeZone, zone)
		}
	}
}
