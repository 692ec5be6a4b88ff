package console

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestCampaign_Placeholders: for each column, the console says what a message writes for it, and that is something a template takes.
func TestCampaign_Placeholders(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"First Name": "{{ first_name }}", "city": "{{ city }}", "E-Mail": "{{ e_mail }}", "Straße": "{{ ['Straße'] }}", "2nd": "{{ ['2nd'] }}", "and": "{{ ['and'] }}", "Or": "{{ Or }}", "empty": "{{ ['empty'] }}",
		"नाम": "{{ ['नाम'] }}", "first\u200Bname": "{{ first_name }}", "\u200Brecipient": "{{ recipient_1 }}", "—": "",
	} {
		if got := (fileColumn{Name: variableName(header)}).Placeholder(); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	for name, want := range map[string]string{"it's": `{{ ["it's"] }}`, "a b": "{{ ['a b'] }}", `"'`: "", "first-name": "{{ first-name }}", "_": "{{ _ }}"} {
		if got := (fileColumn{Name: name}).Placeholder(); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	b := setup(t)
	page := b.upload(b.draftPath("message.title", "Hi")+"/audience/columns", "id,Straße,and,First Name\n1,2,3,4\n")
	for _, want := range []string{"{{ ['Straße'] }}", "{{ ['and'] }}", "{{ first_name }}"} {
		if !strings.Contains(html.UnescapeString(page.Body), "<code>"+want+"</code>") {
			t.Errorf("the page lacks %s", want)
		}
	}

	headers := []string{"id", "Straße", "2nd", "and", "blank", "First Name", "नाम"}
	var names, values, message []string
	for i, header := range headers {
		c := fileColumn{Name: variableName(header)}
		names, values, message = append(names, c.Name), append(values, fmt.Sprintf("value-%d", i)), append(message, c.Placeholder())
	}
	names[0], message = "recipient", message[1:]
	at := b.draftPath("message.title", "Hi", "message.body", strings.Join(message, " "))
	id := strings.TrimPrefix(at, "/console/campaigns/")
	if _, err := b.api.Campaigns.PutAudience(t.Context(), id, strings.NewReader(strings.Join(names, ",")+"\n"+strings.Join(values, ",")+"\n"), client.CSV); err != nil {
		t.Fatal(err)
	}
	b.get(at+"/preview").has(t, 200, strings.Join(values[1:], " "))
}
