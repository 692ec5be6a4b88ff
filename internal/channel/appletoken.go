package channel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Apple refuses a provider token that is older than an hour, and a client that makes new ones more often than every
// twenty minutes.
const (
	oldestToken  = 40 * time.Minute
	renewedAfter = 20 * time.Minute
)

// appleTokens makes the provider tokens of a key of Apple's developer account.
//
// https://developer.apple.com/documentation/usernotifications/establishing-a-token-based-connection-to-apns
type appleTokens struct {
	key           *ecdsa.PrivateKey
	keyID, teamID string
	now           func() time.Time

	mu    sync.Mutex
	token string
	made  time.Time
}

// newAppleTokens reads the text of a .p8 file. Its errors quote nothing of it.
func newAppleTokens(pem, keyID, teamID string, now func() time.Time) (*appleTokens, error) {
	key, ok := privateKey(pem, x509.ParseECPrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("is not the text of a .p8 file: a PKCS #8 key for P-256, in PEM")
	}
	return &appleTokens{key: key, keyID: keyID, teamID: teamID, now: now}, nil
}

// get returns the token, or makes a new one when it is too old.
func (a *appleTokens) get() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if age := now.Sub(a.made); a.token != "" && age >= 0 && age < oldestToken {
		return a.token, nil
	}
	token, err := sign(jose.ES256, a.key, a.keyID, map[string]any{"iss": a.teamID, "iat": now.Unix()})
	if err != nil {
		return "", errors.New("the provider token could not be signed")
	}
	a.token, a.made = token, now
	return token, nil
}

// forget drops a refused token, unless it is so new that Apple would refuse another one.
func (a *appleTokens) forget(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token == token && a.now().Sub(a.made) >= renewedAfter {
		a.token = ""
	}
}
