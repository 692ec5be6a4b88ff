package user

import (
	"crypto/sha256"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// Session is a sign-in of a user in one browser.
type Session struct {
	ID         uuid.UUID // not a secret
	User       uuid.UUID
	Tenant     uuid.UUID
	CreatedAt  time.Time
	LastSeenAt time.Time // to about a minute
	ExpiresAt  time.Time // unless it is used before
	Address    string    // the client's address at sign-in
	UserAgent  string    // as [TrimAgent] returns it
}

// NewSession is a session to create. Only the hash of its token is stored.
type NewSession struct {
	Hash      [32]byte // see [HashSession]
	User      uuid.UUID
	Password  string // the stored hash of the password of this sign-in; "": without a password
	ExpiresAt time.Time
	Address   string
	UserAgent string
}

// MaxSessions is the maximum number of sessions of a user. A new session replaces the one that was unused for longest.
const MaxSessions = 50

// HashSession returns the SHA-256 of a session's token, which is stored.
func HashSession(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// maxAgent is the maximum size of a stored User-Agent, in bytes.
const maxAgent = 200

// TrimAgent returns the stored form of a User-Agent: its beginning, without unprintable characters.
func TrimAgent(text string) string { return printable(text, maxAgent) }

// TrimName returns the stored form of a name from outside: its first [MaxName] bytes, without unprintable characters.
func TrimName(text string) string { return printable(text, MaxName) }

func printable(text string, most int) string {
	text = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
