package campaigns

import "testing"

// TestFileColumn_Placeholder: for each heading, the console shows what a message writes for it.
func TestFileColumn_Placeholder(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"First Name": "{{ first_name }}", "city": "{{ city }}", "E-Mail": "{{ e_mail }}", "Straße": "{{ ['Straße'] }}", "2nd": "{{ ['2nd'] }}", "and": "{{ ['and'] }}", "Or": "{{ Or }}", "empty": "{{ ['empty'] }}", "blank": "{{ ['blank'] }}",
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
}
