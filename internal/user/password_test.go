package user

import (
	"context"
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

func TestCheckPassword(t *testing.T) {
	for password, fine := range map[string]bool{
		"correct horse":            true,
		"short":                    false,
		"ääääääääääöü":             true, // twelve characters
		"ääääääääääö":              false,
		strings.Repeat("ab", 512):  true,
		strings.Repeat("ab", 513):  false,
		"\xffcorrect horse":        false,
		"aaaaaaaaaaaaaaa":          false,
		"Ada.Lovelace@example.com": false,
		"ADA.LOVELACE":             false, // what is before the @
		"augusta ada king":         false,
		"":                         false,
	} {
		if wrong := CheckPassword(password, "ada.lovelace@example.com", "Augusta Ada King"); (wrong == "") != fine {
			t.Errorf("%q: %q", password, wrong)
		}
	}
}

func TestPasswords_Match(t *testing.T) {
	ctx, p, salt := t.Context(), NewPasswords(), SaltOf([]byte("secret"), "ada@x")
	kept, err := p.Hash(ctx, "a", salt, "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(kept) {
		t.Errorf("%s", kept)
	}
	other, err := p.Hash(ctx, "a", salt, "battery staple")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		kept     []string
		password string
		want     int
	}{
		{[]string{kept}, "correct horse", 0}, {[]string{kept}, "correct hors", -1}, {[]string{kept}, "", -1}, {nil, "correct horse", -1}, {nil, "", -1},
		{[]string{other, kept, kept}, "correct horse", 1}, {[]string{"plain", kept}, "correct horse", 1},
	} {
		if got, err := p.Match(ctx, "a", salt, row.kept, row.password); got != row.want || err != nil {
			t.Errorf("%q: %v, %v", row.password, got, err)
		}
	}
}

// TestSaltOf checks that the salts of two sign-in names or two installations differ.
func TestSaltOf(t *testing.T) {
	one := SaltOf([]byte("secret"), "ada@x")
	if one != SaltOf([]byte("secret"), "ada@x") || one == SaltOf([]byte("secret"), "bea@x") || one == SaltOf([]byte("other"), "ada@x") {
		t.Errorf("%x", one)
	}
}

// TestPasswords_OneHash checks that a comparison computes one hash for any number of tenants with the sign-in name.
func TestPasswords_OneHash(t *testing.T) {
	p, salt := NewPasswords(), SaltOf([]byte("secret"), "ada@x")
	more := 0
	p.compare = func(phc, password string) (bool, error) {
		more++
		return compare(phc, password)
	}
	for n, hashes := range [][]string{nil, {hash(salt, "one")}, {hash(salt, "one"), hash(salt, "two"), hash(salt, "three")}} {
		for _, password := range []string{"wrong", "one", "three"} {
			if _, err := p.Match(t.Context(), "192.0.2.1", salt, hashes, password); err != nil || more != 0 {
				t.Errorf("%d: %d more hashes, %v", n, more, err)
			}
		}
	}
	if _, err := p.Match(t.Context(), "192.0.2.1", salt, []string{hash(Salt{1}, "one")}, "one"); err != nil || more != 1 {
		t.Errorf("another salt: %d more hashes, %v", more, err)
	}
}

// TestPasswords_OtherParams checks that a hash of an earlier or later release is compared by its own parameters.
func TestPasswords_OtherParams(t *testing.T) {
	salt := []byte("0123456789abcdef")
	sum := argon2.IDKey([]byte("correct horse"), salt, 1, 64, 2, 24)
	kept := "$argon2id$v=19$m=64,t=1,p=2$" + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(sum)
	if i, err := NewPasswords().Match(t.Context(), "a", Salt{}, []string{kept}, "correct horse"); i != 0 || err != nil {
		t.Error(i, err)
	}
}

// TestPasswords_Foreign checks that a foreign hash matches nothing, costs nothing, and is not repeated in the error.
func TestPasswords_Foreign(t *testing.T) {
	p := NewPasswords()
	salt, sum := base64.RawStdEncoding.EncodeToString(make([]byte, 16)), base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	for _, kept := range []string{
		"plain", "$2a$10$abc", "$argon2id$v=19$m=19456,t=2,p=1$" + salt, "$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=4294967295,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=99999,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=19456,t=2,p=0$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=2,p=1$$" + sum, "$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=x$" + salt + "$" + sum,
	} {
		if i, err := p.Match(t.Context(), "a", Salt{1}, []string{kept}, ""); i != -1 || err == nil || strings.Contains(err.Error(), "$") {
			t.Errorf("%s: %v, %v", kept, i, err)
		}
	}
}

// TestPasswords_Permits checks that one address has two permits, all have four, and a wait ends with its context.
func TestPasswords_Permits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords()
		for _, address := range []string{"a", "a", "b"} {
			if _, err := p.permits.Acquire(t.Context(), address, 1); err != nil {
				t.Fatal(err)
			}
		}
		for address, want := range map[string]bool{"a": false, "c": true} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, hashed := p.Hash(ctx, address, Salt{}, "correct horse")
			_, compared := p.Match(ctx, address, Salt{}, nil, "correct horse")
			cancel()
			for _, err := range []error{hashed, compared} {
				if full := (*bulkhead.FullError)(nil); errors.As(err, &full) == want {
					t.Errorf("%s: %v", address, err)
				}
			}
		}
	})
}
