package console

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestCampaign_Placeholders shows a placeholder for each column, and a template with these placeholders is valid.
func TestCampaign_Placeholders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := b.upload(b.draftPath("message.title", "Hi")+"/audience/columns", "id,Straße,and,First Name\n1,2,3,4\n")
	for _, want := range []string{"{{ ['Straße'] }}", "{{ ['and'] }}", "{{ first_name }}"} {
		if !strings.Contains(html.UnescapeString(page.Body), "<code>"+want+"</code>") {
			t.Errorf("the page lacks %s", want)
		}
	}

	names := []string{"recipient", "Straße", "2nd", "and", "blank", "first_name", "नाम"}
	message := []string{"{{ ['Straße'] }}", "{{ ['2nd'] }}", "{{ ['and'] }}", "{{ ['blank'] }}", "{{ first_name }}", "{{ ['नाम'] }}"}
	var values []string
	for i := range names {
		values = append(values, fmt.Sprintf("value-%d", i))
	}
	at := b.draftPath("message.title", "Hi", "message.body", strings.Join(message, " "))
	id := strings.TrimPrefix(at, "/console/campaigns/")
	if _, err := b.api.Campaigns.PutAudience(t.Context(), id, strings.NewReader(strings.Join(names, ",")+"\n"+strings.Join(values, ",")+"\n"), client.CSV); err != nil {
		t.Fatal(err)
	}
	b.get(at+"/preview").has(t, 200, strings.Join(values[1:], " "))
}
