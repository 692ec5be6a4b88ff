package console

import (
	"html"
	"strings"
	"testing"
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
}
