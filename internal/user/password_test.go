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

func TestPasswords_Matches(t *testing.T) {
	ctx, p := t.Context(), NewPasswords()
	kept, err := p.Hash(ctx, "a", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`).MatchString(kept) {
		t.Errorf("%s", kept)
	}
	if again, _ := p.Hash(ctx, "a", "correct horse"); again == kept {
		t.Error("two hashes have the same salt")
	}
	for _, row := range []struct {
		kept, password string
		want           bool
	}{{kept, "correct horse", true}, {kept, "correct hors", false}, {kept, "", false}, {"", "correct horse", false}, {"", "", false}} {
		if got, err := p.Matches(ctx, "a", row.kept, row.password); got != row.want || err != nil {
			t.Errorf("%q: %v, %v", row.password, got, err)
		}
	}
}

// TestPasswords_NothingKept: a comparison with nothing is one with a hash of the usual parameters.
func TestPasswords_NothingKept(t *testing.T) {
	t.Parallel()
	p := NewPasswords()
	kept := hash("correct horse battery")
	var compared []string
	p.compare = func(phc, password string) (bool, error) {
		compared = append(compared, phc[:strings.LastIndex(phc, "$")-22]) // without the salt and the sum
		return compare(phc, password)
	}
	for _, phc := range []string{kept, ""} {
		if same, err := p.Matches(t.Context(), "192.0.2.1", phc, "wrong"); same || err != nil {
			t.Errorf("%q: %v, %v", phc, same, err)
		}
	}
	if len(compared) != 2 || compared[0] != compared[1] || compared[0] != kept[:len(compared[0])] {
		t.Errorf("%q", compared)
	}
}

// TestPasswords_OtherParams: a hash is compared by the parameters that it names, as of an earlier or later release.
func TestPasswords_OtherParams(t *testing.T) {
	salt := []byte("0123456789abcdef")
	sum := argon2.IDKey([]byte("correct horse"), salt, 1, 64, 2, 24)
	kept := "$argon2id$v=19$m=64,t=1,p=2$" + base64.RawStdEncoding.EncodeToString(salt) + "$" + base64.RawStdEncoding.EncodeToString(sum)
	if ok, err := NewPasswords().Matches(t.Context(), "a", kept, "correct horse"); !ok || err != nil {
		t.Error(ok, err)
	}
}

// TestPasswords_Foreign: what is no hash of ours opens nothing, takes nothing, and is not repeated.
func TestPasswords_Foreign(t *testing.T) {
	p := NewPasswords()
	salt, sum := base64.RawStdEncoding.EncodeToString(make([]byte, 16)), base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	for _, kept := range []string{
		"plain", "$2a$10$abc", "$argon2id$v=19$m=19456,t=2,p=1$" + salt, "$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=4294967295,t=2,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=99999,p=1$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + sum,
		"$argon2id$v=19$m=19456,t=2,p=0$" + salt + "$" + sum, "$argon2id$v=19$m=19456,t=2,p=1$$" + sum, "$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=x$" + salt + "$" + sum,
	} {
		if ok, err := p.Matches(t.Context(), "a", kept, ""); ok || err == nil || strings.Contains(err.Error(), "$") {
			t.Errorf("%s: %v, %v", kept, ok, err)
		}
	}
}

// TestPasswords_Turns: one address has two turns, all have four, and a wait ends with its context.
func TestPasswords_Turns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords()
		for _, address := range []string{"a", "a", "b"} {
			if _, err := p.turns.Acquire(t.Context(), address, 1); err != nil {
				t.Fatal(err)
			}
		}
		for address, want := range map[string]bool{"a": false, "c": true} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, hashed := p.Hash(ctx, address, "correct horse")
			_, compared := p.Matches(ctx, address, "", "correct horse")
			cancel()
			for _, err := range []error{hashed, compared} {
				if full := (*bulkhead.FullError)(nil); errors.As(err, &full) == want {
					t.Errorf("%s: %v", address, err)
				}
			}
		}
	})
}
