// Package seal encrypts secrets before Postgres stores them, by XChaCha20-Poly1305
// and a key that only the operator has.
//
// A sealed value is a version (1 byte), the id of its key (8), a nonce (24) and
// the ciphertext with its tag. The tag also covers the version, the id and the
// [Cell] of the value: a value that is copied to another row, column or tenant
// does not open.
package seal

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"golang.org/x/crypto/chacha20poly1305"
)

// Variables of the environment that hold the keys.
const (
	KeyVariable      = "SENDQUOTA_SEAL_KEY"
	PreviousVariable = "SENDQUOTA_SEAL_KEY_PREVIOUS"
)

var (
	// ErrNoKey reports that there is no key to seal or open with.
	ErrNoKey = errors.New(KeyVariable + " is not set")

	// ErrOtherKey reports that none of the keys has sealed the value.
	ErrOtherKey = errors.New("it is sealed with another key than " + KeyVariable + " and " + PreviousVariable)

	// ErrUnknownKey reports that other programs of the database seal with a key that this program does not have.
	ErrUnknownKey = errors.New("other programs of this database have another " + KeyVariable)

	// ErrDamaged reports that the value was changed after it was sealed, or copied from another place.
	ErrDamaged = errors.New("it is damaged, or was copied from another row")
)

const (
	version = 1
	idBytes = 8

	// PrefixBytes is the length of [Sealer.Prefix].
	PrefixBytes = 1 + idBytes
)

// Cell is the row and column of a sealed value.
type Cell struct {
	Table, Column string
	Row, Tenant   uuid.UUID
}

// String names the cell, without the value.
func (p Cell) String() string {
	return fmt.Sprintf("%s.%s of %s (tenant %s)", p.Table, p.Column, p.Row, p.Tenant)
}

// bind returns what the tag of a value covers besides the ciphertext.
func (p Cell) bind(prefix []byte) []byte {
	b := slices.Clone(prefix)
	for _, name := range []string{p.Table, p.Column} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(name))), name...)
	}
	return append(append(b, p.Row[:]...), p.Tenant[:]...)
}

// Sealer seals with its first key, and opens with each. It is safe for concurrent
// use. A nil Sealer has no key. Formatting a Sealer does not print keys.
type Sealer struct{ keys []key }

type key struct {
	prefix []byte // of what it seals
	aead   cipher.AEAD
}

// Format prints no key, whatever the verb.
func (*Sealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// New returns a Sealer with keys of 32 bytes in base64. Empty ones are left out; if
// all are empty, it returns nil. The error does not quote a key.
func New(keys ...string) (*Sealer, error) {
	var s Sealer
	for _, text := range keys {
		if text == "" {
			continue
		}
		bytes, err := base64.StdEncoding.Strict().DecodeString(text)
		switch {
		case err != nil:
			return nil, errors.New("must be 32 bytes in base64, as `openssl rand -base64 32` makes them")
		case len(bytes) != chacha20poly1305.KeySize:
			return nil, fmt.Errorf("must be 32 bytes in base64, as `openssl rand -base64 32` makes them; has %d bytes", len(bytes))
		}
		aead, err := chacha20poly1305.NewX(bytes)
		if err != nil {
			return nil, err
		}
		id := hmac.New(sha256.New, bytes)
		id.Write([]byte("sendquota seal: id of the key"))
		s.keys = append(s.keys, key{append([]byte{version}, id.Sum(nil)[:idBytes]...), aead})
	}
	if s.keys == nil {
		return nil, nil
	}
	return &s, nil
}

// NewKey returns a random key in the form that [New] reads.
func NewKey() string {
	bytes := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(bytes) // never fails
	return base64.StdEncoding.EncodeToString(bytes)
}

// Prefix returns the first bytes of everything that the Sealer seals. It is nil
// for a nil Sealer.
func (s *Sealer) Prefix() []byte {
	if s == nil {
		return nil
	}
	return s.keys[0].prefix
}

// Has reports whether one of the keys seals with a prefix.
func (s *Sealer) Has(prefix []byte) bool {
	return s != nil && slices.ContainsFunc(s.keys, func(k key) bool { return slices.Equal(k.prefix, prefix) })
}

// Seal encrypts a value for a place. The only error is [ErrNoKey].
func (s *Sealer) Seal(plain []byte, at Cell) ([]byte, error) {
	if s == nil {
		return nil, ErrNoKey
	}
	k := s.keys[0]
	sealed := make([]byte, PrefixBytes+chacha20poly1305.NonceSizeX, PrefixBytes+chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	nonce := sealed[copy(sealed, k.prefix):]
	_, _ = rand.Read(nonce) // never fails
	return k.aead.Seal(sealed, nonce, plain, at.bind(k.prefix)), nil
}

// Open decrypts the value of a place. The error names the place, and wraps
// [ErrNoKey], [ErrOtherKey] or [ErrDamaged].
func (s *Sealer) Open(sealed []byte, at Cell) ([]byte, error) {
	plain, err := s.open(sealed, at)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", at, err)
	}
	return plain, nil
}

func (s *Sealer) open(sealed []byte, at Cell) ([]byte, error) {
	if s == nil {
		return nil, ErrNoKey
	}
	if len(sealed) < PrefixBytes+chacha20poly1305.NonceSizeX {
		return nil, ErrDamaged
	}
	prefix, rest := sealed[:PrefixBytes], sealed[PrefixBytes:]
	i := slices.IndexFunc(s.keys, func(k key) bool { return slices.Equal(k.prefix, prefix) })
	if i < 0 {
		return nil, ErrOtherKey
	}
	plain, err := s.keys[i].aead.Open(nil, rest[:chacha20poly1305.NonceSizeX], rest[chacha20poly1305.NonceSizeX:], at.bind(prefix))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}
