package channel

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"

	"github.com/sendquota/sendquota/internal/outbound"
)

const (
	messagingScope = "https://www.googleapis.com/auth/firebase.messaging"
	assertionLife  = time.Hour // the maximum that Google accepts
	tokenMargin    = time.Minute
)

// serviceAccount is the part of a service account's JSON file that is needed.
type serviceAccount struct {
	Type        string `json:"type"`
	ProjectID   string `json:"project_id"`
	KeyID       string `json:"private_key_id"`
	PrivateKey  string `json:"private_key"`
	ClientEmail string `json:"client_email"`
	TokenURI    string `json:"token_uri"`
}

// googleTokens gets the access tokens of a service account: it signs an assertion and exchanges it for a token, which
// serves until shortly before it expires. There is one exchange at a time, shared by all waiting requests.
//
// https://developers.google.com/identity/protocols/oauth2/service-account#httprest
type googleTokens struct {
	account  serviceAccount
	key      *rsa.PrivateKey
	url      *url.URL
	client   *outbound.Client
	now      func() time.Time
	exchange singleflight.Group

	mu    sync.Mutex
	token string
	until time.Time
}

// newGoogleTokens reads the text of a service account's file. Its errors quote nothing of it.
func newGoogleTokens(credentials, tokenURL string, client *outbound.Client, now func() time.Time) (*googleTokens, error) {
	g := &googleTokens{client: client, now: now}
	if json.Unmarshal([]byte(credentials), &g.account) != nil || g.account.Type != "service_account" || g.account.ClientEmail == "" {
		return nil, errors.New("is not the JSON of a service account")
	}
	var ok bool
	if g.key, ok = privateKey(g.account.PrivateKey, x509.ParsePKCS1PrivateKey); !ok {
		return nil, errors.New("has no valid RSA key in private_key")
	}
	var err error
	if g.url, err = parseURL(cmp.Or(tokenURL, g.account.TokenURI, "https://oauth2.googleapis.com/token")); err != nil {
		return nil, errors.New("has a token_uri that is not an absolute http or https URL")
	}
	return g, nil
}

// get returns a token. Its error comes from a fixed list.
func (g *googleTokens) get(ctx context.Context) (string, error) {
	if token := g.cached(); token != "" {
		return token, nil
	}
	// Waiting requests share the exchange, so that none of them may cancel it.
	shared := context.WithoutCancel(ctx)
	done := g.exchange.DoChan("", func() (any, error) {
		if token := g.cached(); token != "" { // an earlier exchange has just ended
			return token, nil
		}
		return g.fetch(shared)
	})
	select {
	case r := <-done:
		token, _ := r.Val.(string)
		return token, r.Err
	case <-ctx.Done():
		return "", errors.New("no access token: " + outbound.Reason(ctx.Err()))
	}
}

func (g *googleTokens) cached() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now().Before(g.until) {
		return g.token
	}
	return ""
}

// forget drops a refused token.
func (g *googleTokens) forget(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == token {
		g.token, g.until = "", time.Time{}
	}
}

func (g *googleTokens) fetch(ctx context.Context) (string, error) {
	began := g.now()
	assertion, err := g.assertion(began)
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	a, err := g.client.Do(ctx, outbound.Post(g.url, "application/x-www-form-urlencoded", []byte(form.Encode())))
	if err != nil {
		return "", fmt.Errorf("no access token: %w", err)
	}
	var got struct {
		Token   string      `json:"access_token"`
		Seconds json.Number `json:"expires_in"` // a number, or one as string
		Error   string      `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &got)
	switch {
	case a.Status != 200 && got.Error == "invalid_grant":
		return "", errors.New("no access token: invalid_grant: the service account or its key is gone, or the clock is wrong")
	case a.Status != 200:
		return "", errors.New("no access token: " + outbound.StatusSentence("the provider", a.Status))
	case got.Token == "":
		return "", errors.New("no access token: the answer has none")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seconds, _ := got.Seconds.Int64() // without them, the token serves once
	life := time.Duration(min(seconds, 24*3600)) * time.Second
	g.token, g.until = got.Token, began.Add(life-min(tokenMargin, life/10))
	return got.Token, nil
}

func (g *googleTokens) assertion(now time.Time) (string, error) {
	signed, err := sign(jose.RS256, g.key, g.account.KeyID, map[string]any{
		"iss": g.account.ClientEmail, "scope": messagingScope, "aud": g.url.String(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", errors.New("no access token: the assertion could not be signed")
	}
	return signed, nil
}
