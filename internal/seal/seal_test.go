package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/seal"
)

func newSealer(t testing.TB, keys ...string) *seal.Sealer {
	t.Helper()
	s, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func place() seal.Cell {
	return seal.Cell{Table: "webhooks", Column: "secret", Row: uuid.New(), Tenant: uuid.New()}
}

// opens fails unless the value opens as plain.
func opens(t *testing.T, s *seal.Sealer, sealed []byte, at seal.Cell, plain string) {
	t.Helper()
	if got, err := s.Open(sealed, at); err != nil || string(got) != plain {
		t.Errorf("%q, %v", got, err)
	}
}

// refuses fails unless opening returns that error, which names the place and not the secret.
func refuses(t *testing.T, s *seal.Sealer, sealed []byte, at seal.Cell, want error) {
	t.Helper()
	got, err := s.Open(sealed, at)
	if !errors.Is(err, want) || got != nil {
		t.Errorf("opened as %q, %v; want %v", got, err, want)
		return
	}
	if !strings.Contains(err.Error(), at.String()) || strings.Contains(err.Error(), secret) {
		t.Errorf("%v does not name %s, or shows the secret", err, at)
	}
}

const secret = "whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQ="

// TestSealer_Place: a value opens at its place, and at no other.
func TestSealer_Place(t *testing.T) {
	t.Parallel()
	s, at := newSealer(t, seal.NewKey()), place()
	sealed, err := s.Seal([]byte(secret), at)
	if err != nil || bytes.Contains(sealed, []byte(secret)) || !bytes.HasPrefix(sealed, s.Prefix()) {
		t.Fatalf("%x, %v", sealed, err)
	}
	opens(t, s, sealed, at, secret)
	again, _ := s.Seal([]byte(secret), at)
	if bytes.Equal(again, sealed) {
		t.Error("sealed twice, a value looks the same")
	}
	for name, change := range map[string]func(p *seal.Cell){
		"row":    func(p *seal.Cell) { p.Row = uuid.New() },
		"tenant": func(p *seal.Cell) { p.Tenant = uuid.New() },
		"column": func(p *seal.Cell) { p.Column = "old_secret" },
		"table":  func(p *seal.Cell) { p.Table = "channels" },
		"shift":  func(p *seal.Cell) { p.Table, p.Column = "webhookss", "ecret" },
		"swap":   func(p *seal.Cell) { p.Row, p.Tenant = p.Tenant, p.Row },
	} {
		other := at
		change(&other)
		t.Run(name, func(t *testing.T) { refuses(t, s, sealed, other, seal.ErrDamaged) })
	}
}

// TestSealer_EveryByte: no bit of a value can be flipped, and no byte be cut off or added.
func TestSealer_EveryByte(t *testing.T) {
	t.Parallel()
	s, at := newSealer(t, seal.NewKey()), place()
	sealed, _ := s.Seal([]byte(secret), at)
	for bit := range 8 * len(sealed) {
		flipped := bytes.Clone(sealed)
		flipped[bit/8] ^= 1 << (bit % 8)
		want := seal.ErrDamaged
		if bit/8 < seal.PrefixBytes {
			want = seal.ErrOtherKey
		}
		refuses(t, s, flipped, at, want)
	}
	for n := range len(sealed) {
		refuses(t, s, sealed[:n], at, seal.ErrDamaged)
	}
	refuses(t, s, append(bytes.Clone(sealed), 0), at, seal.ErrDamaged)
}

// TestSealer_Keys: each key opens what it sealed; the first one seals.
func TestSealer_Keys(t *testing.T) {
	t.Parallel()
	was, is := seal.NewKey(), seal.NewKey()
	old, both, fresh, at := newSealer(t, was), newSealer(t, is, was), newSealer(t, is, ""), place()
	bySealedOld, _ := old.Seal([]byte(secret), at)
	byBoth, _ := both.Seal([]byte(secret), at)
	opens(t, both, bySealedOld, at, secret)
	opens(t, both, byBoth, at, secret)
	opens(t, fresh, byBoth, at, secret)
	refuses(t, fresh, bySealedOld, at, seal.ErrOtherKey)
	refuses(t, old, byBoth, at, seal.ErrOtherKey)
	var none *seal.Sealer
	refuses(t, none, byBoth, at, seal.ErrNoKey)
	if _, err := none.Seal([]byte(secret), at); !errors.Is(err, seal.ErrNoKey) || none.Prefix() != nil {
		t.Errorf("without a key: %v, %x", err, none.Prefix())
	}
	if s := newSealer(t, "", ""); s != nil {
		t.Error("empty keys make a sealer")
	}
}

// TestNew_Form: a key has 32 bytes in base64. No error quotes it, and no format prints it.
func TestNew_Form(t *testing.T) {
	t.Parallel()
	key := seal.NewKey()
	for _, bad := range []string{"topsecret", key[:40], key + "AAAA", key[:43], " " + key, strings.Repeat("ab", 32), key[:42] + "/="} {
		if s, err := seal.New(bad); err == nil || s != nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s := newSealer(t, key)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %d %x", s, s, s, s, s), fmt.Sprintf("%+v", struct{ S *seal.Sealer }{s})} {
		if strings.Trim(strings.ReplaceAll(text, "[redacted]", ""), "{}S: ") != "" {
			t.Errorf("prints %s", text)
		}
	}
}

// FuzzSealer: what is sealed opens, and any other bytes do not.
func FuzzSealer(f *testing.F) {
	f.Add([]byte(secret), []byte{}, "webhooks", "secret")
	f.Add([]byte{}, []byte{1}, "", "")
	s := newSealer(f, seal.NewKey())
	f.Fuzz(func(t *testing.T, plain, other []byte, table, column string) {
		at := seal.Cell{Table: table, Column: column, Row: uuid.New(), Tenant: uuid.New()}
		sealed, err := s.Seal(plain, at)
		if err != nil {
			t.Fatal(err)
		}
		opens(t, s, sealed, at, string(plain))
		for _, forged := range [][]byte{other, append(bytes.Clone(s.Prefix()), other...), append(bytes.Clone(sealed[:len(sealed)/2]), other...)} {
			if bytes.Equal(forged, sealed) {
				continue
			}
			if got, err := s.Open(forged, at); err == nil || got != nil {
				t.Errorf("%x opens as %x", forged, got)
			}
		}
	})
}
