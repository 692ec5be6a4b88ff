package user

import (
	"crypto/sha256"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

// Session is one browser in which a user is signed in.
type Session struct {
	ID         uuid.UUID // which is no secret
	User       uuid.UUID
	Tenant     uuid.UUID
	CreatedAt  time.Time
	LastSeenAt time.Time // to about a minute
	ExpiresAt  time.Time // unless it is used before
	Address    string    // from which the user signed in
	UserAgent  string    // as [TrimAgent] returns it
}

// NewSession is a session that begins. Only the hash of its token is kept.
type NewSession struct {
	Hash      [32]byte // see [HashSession]
	User      uuid.UUID
	Password  string // what was kept of the password that the user has signed in with; "": with none
	ExpiresAt time.Time
	Address   string
	UserAgent string
}

// MaxSessions is how many sessions of a user are kept: the one that was not seen for longest makes room for another.
const MaxSessions = 50

// HashSession returns what is kept of a session's token: its SHA-256.
func HashSession(token string) [32]byte { return sha256.Sum256([]byte(token)) }

// maxAgent is how many bytes of a browser's name for itself are kept.
const maxAgent = 200

// TrimAgent returns what is kept of a browser's name for itself: its beginning, and only what can be printed.
func TrimAgent(text string) string { return printable(text, maxAgent) }

// TrimName returns what is kept of a name that somebody else has chosen: its first [MaxName] bytes that can be printed.
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
