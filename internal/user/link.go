package user

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/google/uuid"
)

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
