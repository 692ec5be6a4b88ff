package console

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// testProvider is an OpenID Connect provider with one client, "sq", whose users need no password: it speaks the code flow and
// demands PKCE.
type testProvider struct {
	*httptest.Server
	t      *testing.T
	signer jose.Signer
	key    jose.JSONWebKey

	claims map[string]any // of the next id token; a claim that is nil is left out
	forge  func(claims map[string]any)
	codes  map[string]grant
	asked  url.Values // of the last authorization
	tokens int        // how many were issued
	status int        // of the token endpoint; 0: as it should be
}

// grant is what a code is for.
type grant struct{ challenge, nonce, redirect string }

func newTestProvider(t *testing.T) *testProvider {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &testProvider{t: t, codes: map[string]grant{}, claims: map[string]any{}}
	p.signWith(private)
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

// signWith has the provider sign with a key, which need not be the one that it names.
func (p *testProvider) signWith(private *rsa.PrivateKey) {
	var err error
	if p.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: private, KeyID: "k1"}}, nil); err != nil {
		p.t.Fatal(err)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (p *testProvider) authorize(w http.ResponseWriter, r *http.Request) {
	p.asked = r.URL.Query()
	if p.asked.Get("client_id") != "sq" || p.asked.Get("response_type") != "code" || p.asked.Get("code_challenge_method") != "S256" || p.asked.Get("nonce") == "" || p.asked.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := unguessable()
	p.codes[code] = grant{p.asked.Get("code_challenge"), p.asked.Get("nonce"), p.asked.Get("redirect_uri")}
	back, _ := url.Parse(p.asked.Get("redirect_uri"))
	back.RawQuery = url.Values{"code": {code}, "state": {p.asked.Get("state")}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (p *testProvider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	code := r.FormValue("code")
	g, known := p.codes[code]
	delete(p.codes, code)
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	fits := known && id == "sq" && secret == "hush" && r.FormValue("redirect_uri") == g.redirect && base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge
	if !fits || p.status != 0 {
		w.WriteHeader(max(http.StatusBadRequest, p.status))
		answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "sq", "sub": "s1", "nonce": g.nonce, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	for name, v := range p.claims {
		claims[name] = v
	}
	if p.forge != nil {
		p.forge(claims)
	}
	text, err := jwt.Signed(p.signer).Claims(claims).Serialize()
	if err != nil {
		p.t.Error(err)
	}
	p.tokens++
	answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": text})
}
