// Package oidcprovider is an OpenID Connect provider for tests. It requires no password and is strict about the
// protocol: it supports the code flow and demands PKCE, a state and a nonce.
package oidcprovider

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/sendquota/sendquota/internal/testenv"
)

// Provider has one client with the id sq and the secret hush. Change its fields only while no browser is active.
type Provider struct {
	*httptest.Server // its URL is the issuer

	Claims map[string]any              // of the next id token, besides those that each has
	Forge  func(claims map[string]any) // changes them at last; nil: nothing does
	Status int                         // of the token endpoint; 0: as it should be
	Asked  url.Values                  // of the last authorization
	Tokens int                         // how many were issued

	t      testenv.T
	signer jose.Signer
	key    jose.JSONWebKey
	codes  map[string]grant
}

// grant is the request that a code was issued for.
type grant struct{ challenge, nonce, redirect string }

// New starts a provider, until the end of the test.
func New(t testenv.T) *Provider {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	testenv.Check(t, err)
	p := &Provider{t: t, codes: map[string]grant{}, Claims: map[string]any{}}
	p.SignWith(private)
	p.key = jose.JSONWebKey{Key: private.Public(), KeyID: "k1", Algorithm: string(jose.RS256), Use: "sig"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize?realm=a", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{p.key}})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// SignWith makes the provider sign with a key, which may differ from the one that it publishes.
func (p *Provider) SignWith(private *rsa.PrivateKey) {
	var err error
	if p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: private, KeyID: "k1"}}, nil); err != nil {
		p.t.Fatalf("%v", err)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.Asked = r.URL.Query()
	if p.Asked.Get("client_id") != "sq" || p.Asked.Get("response_type") != "code" || p.Asked.Get("code_challenge_method") != "S256" || p.Asked.Get("nonce") == "" || p.Asked.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.codes[code] = grant{p.Asked.Get("code_challenge"), p.Asked.Get("nonce"), p.Asked.Get("redirect_uri")}
	back, _ := url.Parse(p.Asked.Get("redirect_uri"))
	back.RawQuery = url.Values{"code": {code}, "state": {p.Asked.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	code := r.FormValue("code")
	g, known := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	fits := known && id == "sq" && secret == "hush" && r.FormValue("redirect_uri") == g.redirect && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge
	if !fits || p.Status != 0 {
		w.WriteHeader(max(http.StatusBadRequest, p.Status))
		answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "sq", "sub": "s1", "nonce": g.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	for name, v := range p.Claims {
		claims[name] = v
	}
	if p.Forge != nil {
		p.Forge(claims)
	}
	text, err := jwt.Signed(p.signer).Claims(claims).Serialize()
	if err != nil {
		p.t.Errorf("%v", err)
	}
	p.Tokens++
	answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": text})
}
