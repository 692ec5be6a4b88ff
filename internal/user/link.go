package user

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/google/uuid"
)

// LinkLifetime is how long a link can be used to set a password.
const LinkLifetime = 24 * time.Hour

// LinkPath is the path of the page of a link, without its token.
const LinkPath = "/console/set-password/"

// NewLink returns a token of 256 random bits for a link, and what is kept of it.
func NewLink() (token string, hash [32]byte) { return newToken() }

// HashLink returns what is kept of a link's token: its SHA-256. The token has 256 random bits, so that nothing slower is
// needed.
func HashLink(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// LinkID returns the id of a link, which opens nothing, from its hash. The audit log names the link by it.
func LinkID(hash [32]byte) uuid.UUID { return uuid.NewSHA1(uuid.Nil, hash[:]) }

func newToken() (token string, hash [32]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	return token, sha256.Sum256([]byte(token))
}
