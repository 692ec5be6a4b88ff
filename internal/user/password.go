package user

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/crypto/argon2"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// The minimum length of a password in characters, and the maximum in bytes.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// CheckPassword returns what is wrong with a new password, or "". Only its length makes it hard to guess; the kinds of
// its characters do not matter.
func CheckPassword(password, email, name string) (wrong string) {
	local, _, _ := strings.Cut(email, "@")
	own := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return "must be valid UTF-8"
	case len(password) > MaxPassword:
		return fmt.Sprintf("must have at most %d bytes", MaxPassword)
	case utf8.RuneCountInString(password) < MinPassword:
		return fmt.Sprintf("must have at least %d characters", MinPassword)
	case strings.Count(password, password[:1]) == len(password):
		return "must not repeat a single character"
	case own == strings.ToLower(email), own == local, own == strings.ToLower(name):
		return "must not be your name or your e-mail address"
	}
	return ""
}

// params are the parameters of an argon2id hash: memory in KiB, passes over it, and lanes.
type params struct {
	memory, passes uint32
	lanes          uint8
}

// current are the parameters of new hashes, from OWASP's Password Storage Cheat Sheet. They take little memory compared
// with the program's other work.
var current = params{memory: 19 * 1024, passes: 2, lanes: 1}

const (
	saltBytes = 16
	hashBytes = 32
)

// How many passwords are hashed at the same time, in total and for one address.
const (
	hashesAtATime = 4
	hashesOfOne   = 2
)

// Passwords hashes passwords and compares them with hashes. Each hash takes 19 MiB. At most four run at a time, and at
// most two for one address, so that a client who tries many passwords does not use up memory and processors. It is safe
// for concurrent use.
type Passwords struct {
	permits *bulkhead.Bulkhead[string]

	compare func(phc, password string) (bool, error)
}

// NewPasswords returns a Passwords for one program.
func NewPasswords() *Passwords {
	return &Passwords{permits: bulkhead.New[string](hashesAtATime, hashesOfOne), compare: compare}
}

// Salt is the salt of the password hashes of one sign-in name.
type Salt [saltBytes]byte

// SaltOf returns the salt of a sign-in name: an HMAC with a secret of the installation. Users of several tenants with
// the same name share it. So one hash is compared with all of their passwords, and the time does not reveal their
// number.
func SaltOf(secret []byte, email string) (salt Salt) {
	copy(salt[:], Keyed(secret, "salt", email))
	return salt
}

// Keyed returns an HMAC of a text for one purpose, with a secret of the installation.
func Keyed(secret []byte, purpose, text string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(h, purpose+"\x00"+text)
	return h.Sum(nil)
}

// Hash returns the stored form of a password, in the PHC string format. address is the client's address. It fails only
// if ctx ends before a permit is free, with a [*bulkhead.FullError].
func (p *Passwords) Hash(ctx context.Context, address string, salt Salt, password string) (phc string, err error) {
	permit, err := p.permits.Acquire(ctx, address, 1)
	if err != nil {
		return "", err
	}
	defer permit.Release()
	return hash(salt, password), nil
}

// Match returns the index of the first hash that matches the password; -1: none. It computes one hash, even if there is
// nothing to compare it with. A hash with another salt or other parameters, from another release, takes one more. It
// fails as Hash does, or if no hash matches and one is not in the argon2id format.
func (p *Passwords) Match(ctx context.Context, address string, salt Salt, hashes []string, password string) (int, error) {
	permit, err := p.permits.Acquire(ctx, address, 1)
	if err != nil {
		return -1, err
	}
	defer permit.Release()
	own, fits := hash(salt, password), -1
	usual := own[:strings.LastIndexByte(own, '$')+1]
	var wrong []error
	for i, phc := range hashes {
		same := subtle.ConstantTimeCompare([]byte(phc), []byte(own)) == 1
		if !strings.HasPrefix(phc, usual) {
			same, err = p.compare(phc, password)
			wrong = append(wrong, err)
		}
		if same && fits < 0 {
			fits = i
		}
	}
	if fits < 0 {
		return -1, errors.Join(wrong...)
	}
	return fits, nil
}

func hash(salt Salt, password string) string {
	sum := argon2.IDKey([]byte(password), salt[:], current.passes, current.memory, current.lanes, hashBytes)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, current.memory, current.passes, current.lanes,
		base64.RawStdEncoding.EncodeToString(salt[:]), base64.RawStdEncoding.EncodeToString(sum))
}

// compare takes the same time for every password.
func compare(phc, password string) (bool, error) {
	p, salt, sum, err := parse(phc)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, p.passes, p.memory, p.lanes, uint32(len(sum)))
	return subtle.ConstantTimeCompare(got, sum) == 1, nil
}

// parse reads a hash in the PHC string format. Its error does not repeat the text. The bounds keep a manipulated text
// in the database from taking the program's memory or time.
func parse(phc string) (p params, salt, sum []byte, err error) {
	wrong := fmt.Errorf("the stored password hash is not in the argon2id format")
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, nil, wrong
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); n != 3 || err != nil {
		return p, nil, nil, wrong
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	sum, sumErr := base64.RawStdEncoding.DecodeString(parts[5])
	fits := p.memory >= 8 && p.memory <= 64*1024 && p.passes >= 1 && p.passes <= 10 && p.lanes >= 1 && p.lanes <= 8
	if saltErr != nil || sumErr != nil || !fits || len(salt) < 8 || len(salt) > 64 || len(sum) < 16 || len(sum) > 64 {
		return p, nil, nil, wrong
	}
	return p, salt, sum, nil
}

// LinkLifetime is the validity of a link for setting a password.
const LinkLifetime = 24 * time.Hour

// LinkPath is the path of a link's page, without the token.
const LinkPath = "/console/set-password/"

// NewLink returns a token of 256 random bits for a link, and the hash to store.
func NewLink() (token string, hash [32]byte) { return newToken() }

// HashLink returns the SHA-256 of a link's token, which is stored. The token has 256 random bits, so a slower hash is
// not needed.
func HashLink(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// LinkID derives the id of a link from its hash. The id is not a secret; the audit log names the link by it.
func LinkID(hash [32]byte) uuid.UUID { return uuid.NewSHA1(uuid.Nil, hash[:]) }

func newToken() (token string, hash [32]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	return token, sha256.Sum256([]byte(token))
}
