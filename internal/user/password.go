package user

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// The bounds of a password, in characters and bytes.
const (
	MinPassword = 12
	MaxPassword = 1024
)

// CheckPassword says what is wrong with a password that a user wants to have, or nothing. Length is what makes it hard to
// guess; which characters it has is not looked at.
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
		return "must not be one character again and again"
	case own == strings.ToLower(email), own == local, own == strings.ToLower(name):
		return "must not be your name or your e-mail address"
	}
	return ""
}

// params are those of a hash by argon2id: memory in KiB, passes over it, and lanes.
type params struct {
	memory, passes uint32
	lanes          uint8
}

// current are the parameters of new hashes, from OWASP's Password Storage Cheat Sheet: they take little memory beside
// what the program is there for.
var current = params{memory: 19 * 1024, passes: 2, lanes: 1}

const (
	saltBytes = 16
	hashBytes = 32
)

// How many passwords are hashed at a time, and of those how many for one address.
const (
	hashesAtATime = 4
	hashesOfOne   = 2
)

// Passwords hashes passwords and compares them with hashes. At most four at a time take their 19 MiB, and at most two for
// one address: whoever tries many passwords keeps neither memory nor processors from others. It is safe for concurrent
// use.
type Passwords struct {
	turns *bulkhead.Bulkhead[string]

	compare func(phc, password string) (bool, error)
}

// NewPasswords returns the passwords of a program.
func NewPasswords() *Passwords {
	return &Passwords{turns: bulkhead.New[string](hashesAtATime, hashesOfOne), compare: compare}
}

// Salt is the salt of the hashes of passwords of one sign-in name.
type Salt [saltBytes]byte

// SaltOf returns the salt of a sign-in name: an HMAC by a secret of the installation. So one hash is compared with the passwords of all
// tenants that have the name, and its time does not tell how many they are.
func SaltOf(secret []byte, email string) (salt Salt) {
	copy(salt[:], Keyed(secret, "salt", email))
	return salt
}

// Keyed returns an HMAC of a text, for one purpose, by a secret of the installation.
func Keyed(secret []byte, purpose, text string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(h, purpose+"\x00"+text)
	return h.Sum(nil)
}

// Hash returns what is kept of a password, in the PHC string format. address is the client that it is done for. It fails only if ctx
// ends before there is a turn, with a [*bulkhead.FullError].
func (p *Passwords) Hash(ctx context.Context, address string, salt Salt, password string) (phc string, err error) {
	turn, err := p.turns.Acquire(ctx, address, 1)
	if err != nil {
		return "", err
	}
	defer turn.Release()
	return hash(salt, password), nil
}

// Match returns the place of the first of the hashes that is of this password; -1: none is. It computes one hash, also where there is
// nothing to compare it with; a hash with another salt or other parameters, as of another release, takes one more. It fails as Hash
// does, or if no hash fits and one is not of argon2id.
func (p *Passwords) Match(ctx context.Context, address string, salt Salt, hashes []string, password string) (int, error) {
	turn, err := p.turns.Acquire(ctx, address, 1)
	if err != nil {
		return -1, err
	}
	defer turn.Release()
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

// compare takes as long whatever the password is.
func compare(phc, password string) (bool, error) {
	p, salt, sum, err := parse(phc)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, p.passes, p.memory, p.lanes, uint32(len(sum)))
	return subtle.ConstantTimeCompare(got, sum) == 1, nil
}

// parse reads a hash in the PHC string format. Its error does not repeat the text. The bounds keep a text that somebody
// else wrote into the database from taking the program's memory or time.
func parse(phc string) (p params, salt, sum []byte, err error) {
	wrong := fmt.Errorf("the stored hash of a password is none by argon2id")
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
