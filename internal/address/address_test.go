package address

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, name, address string
		err               error
	}{
		{"anna@example.com", "", "anna@example.com", nil},
		{" anna@example.com\t", "", "anna@example.com", nil},
		{"Anna <anna@example.com>", "Anna", "anna@example.com", nil},
		{"<anna@example.com>", "", "anna@example.com", nil},
		{`"Anna, B." <Anna.B+x@Example.COM>`, "Anna, B.", "Anna.B+x@example.com", nil},
		{"Jürgen <j@BÜCHER.example>", "Jürgen", "j@xn--bcher-kva.example", nil},
		{"=?utf-8?q?J=C3=BCrgen?= <j@example.com>", "Jürgen", "j@example.com", nil},
		{"anna@straße.example", "", "anna@xn--strae-oqa.example", nil},
		{"anna@XN--BCHER-KVA.example", "", "anna@xn--bcher-kva.example", nil},
		{"anna@localhost", "", "anna@localhost", nil},
		{"a@under_score.example", "", "a@under_score.example", nil},
		{"", "", "", ErrForm},
		{"anna", "", "", ErrForm},
		{"anna@", "", "", ErrForm},
		{"@example.com", "", "", ErrForm},
		{"a@example.com, b@example.com", "", "", ErrForm},
		{"list: a@example.com;", "", "", ErrForm},
		{"anna(me)@example.com", "", "", ErrForm},
		{`"a b"@example.com`, "", "", ErrForm},
		{`A <"a b"@example.com>`, "", "", ErrForm},
		{"a@example.com> SIZE=1", "", "", ErrForm},
		{"a@example.com\r\nBcc: b@example.com", "", "", ErrForm},
		{"A <a@example.com>\r\nBcc: b@example.com", "", "", ErrForm},
		{strings.Repeat("a", 65) + "@example.com", "", "", ErrForm},
		{"a@" + strings.Repeat("a.", 126) + "com", "", "", ErrForm},
		{"ånna@example.com", "", "", ErrLocal},
		{"Anna <ånna@bücher.example>", "", "", ErrLocal},
		{"a@xn--a.example", "", "", ErrASCII},
		{"a@b\u00fc\u202ecker.example", "", "", ErrASCII},
		{"=?utf-8?q?a=0D=0ABcc:_b?= <a@example.com>", "", "", ErrForm},
		{strings.Repeat("n", 201) + " <a@example.com>", "", "", ErrName},
	} {
		a, err := Parse(tt.in)
		if err != tt.err || a.Name != tt.name || a.Address != tt.address {
			t.Errorf("%q: %q <%s>, %v", tt.in, a.Name, a.Address, err)
		}
	}
}

func TestNormal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, in, want string }{
		{Email, "Anna <Anna@Example.COM>", "Anna@example.com"},
		{Email, "anna@BÜCHER.example", "anna@xn--bcher-kva.example"},
		{Email, "not an address", "not an address"},
		{Email, "ånna@Example.com", "ånna@Example.com"},
		{SMS, "+4512345678", "+4512345678"},
		{SMS, "+45 (0) 12", "+45 (0) 12"},
		{SMS, "+45 12-34.56 78", "+4512345678"},
		{SMS, "0045 12345678", "+4512345678"},
		{SMS, "12345678", "12345678"},
		{"fcm", " Anna@Example.COM", " Anna@Example.COM"},
		{"webhook", "+45 1", "+45 1"},
	} {
		if got := Normal(tt.kind, tt.in); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.kind, tt.in, got, tt.want)
		}
	}
}

// FuzzNormal holds that a normal address is its own normal form, and that one of e-mail can go into an envelope.
func FuzzNormal(f *testing.F) {
	for _, seed := range []string{"Anna <anna@Example.com>", "a@bücher.example", "+45 12345678", "=?utf-8?q?=0A?= <a@b>", "\"a>\"@b", "a@[1.2.3.4]", "a@b。example", "0@。0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, kind := range []string{Email, SMS, "fcm"} {
			once := Normal(kind, s)
			if again := Normal(kind, once); again != once {
				t.Errorf("%s %q becomes %q, and that %q", kind, s, once, again)
			}
		}
		a, err := Parse(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(a.Address, "<> \t\r\n") || !isPrintable(a.Address) || len(a.Address) > maxAddress {
			t.Errorf("%q is %q", s, a.Address)
		}
		if b, err := Parse(a.Address); err != nil || b.Address != a.Address {
			t.Errorf("%q is %q, and that is %q (%v)", s, a.Address, b.Address, err)
		}
	})
}
