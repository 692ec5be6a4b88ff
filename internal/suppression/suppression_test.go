package suppression

import (
	"testing"

	"github.com/google/uuid"
)

func TestNormal(t *testing.T) {
	for _, tt := range []struct{ address, want string }{
		{"Anna@Example.COM", "Anna@example.com"},
		{" anna@example.com ", "anna@example.com"},
		{"Anna <anna@Example.com>", "anna@example.com"},
		{`"A, B" <anna@example.com>`, "anna@example.com"},
		{"anna@Bücher.example", "anna@xn--bcher-kva.example"},
		{"anna@xn--bcher-kva.example", "anna@xn--bcher-kva.example"},
		{"a@b@C.example", "a@b@C.example"}, // of a wrong form
		{"+4512345678", "+4512345678"},
		{"0045 12 34-56.78", "+4512345678"},
		{"https://user@Example.com/A", "https://user@Example.com/A"},
		{"dGVzdA:APA91b", "dGVzdA:APA91b"},
		{"@", "@"},
		{"", ""},
	} {
		if got := Normal(tt.address); got != tt.want {
			t.Errorf("Normal(%q) is %q, want %q", tt.address, got, tt.want)
		}
		if got := Normal(tt.want); got != tt.want {
			t.Errorf("Normal(%q) is %q: it must not change again", tt.want, got)
		}
	}
}

// TestKeyOf checks that spellings of one address share a key, and that nothing else does.
func TestKeyOf(t *testing.T) {
	a, b := uuid.MustParse("01900000-0000-7000-8000-000000000001"), uuid.MustParse("01900000-0000-7000-8000-000000000002")
	key := KeyOf(a, "mail", "anna@example.com")
	if other := KeyOf(a, "mail", "Anna <anna@EXAMPLE.com>"); other != key {
		t.Errorf("%d and %d for one address", key, other)
	}
	for _, other := range []int64{
		KeyOf(b, "mail", "anna@example.com"), KeyOf(a, "mail2", "anna@example.com"), KeyOf(a, "mai", "lanna@example.com"), KeyOf(a, "mail", "Anna@example.com"),
	} {
		if other == key {
			t.Errorf("%d for another address", other)
		}
	}
}

func FuzzNormal(f *testing.F) {
	f.Add("Anna <anna@Example.com>")
	f.Add("a@b\x00@C")
	f.Fuzz(func(t *testing.T, address string) {
		once := Normal(address)
		if again := Normal(once); again != once {
			t.Errorf("%q, then %q, then %q", address, once, again)
		}
	})
}
