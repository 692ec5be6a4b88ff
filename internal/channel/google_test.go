package channel

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// serviceKey is the key of the service account in the tests; making one takes
// a while.
var serviceKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

const accountMail = "sender@shop-1.iam.gserviceaccount.com"

// google is the server that exchanges assertions for access tokens.
type google struct {
	*httptest.Server
	t         testing.TB
	now       func() time.Time
	answer    func(w http.ResponseWriter, token string) // nil: the token, for an hour
	exchanges atomic.Int64
}

func newGoogle(t testing.TB) *google {
	g := &google{t: t, now: testNow}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// ServeHTTP demands what Google demands of an assertion.
func (g *google) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := fmt.Sprintf("%s-token-%d", markSecret, g.exchanges.Add(1))
	if r.Method != http.MethodPost || r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		g.t.Errorf("%s %v", r.Method, r.Form)
	}
	var claims struct {
		jwt.Claims
		Scope string `json:"scope"`
	}
	head, err := verified(r.FormValue("assertion"), jose.RS256, &serviceKey().PublicKey, &claims)
	if err == nil {
		err = claims.Validate(jwt.Expected{Issuer: accountMail, AnyAudience: jwt.Audience{g.URL + "/token"}, Time: g.now()})
	}
	if err != nil || head.KeyID != "key-1" || claims.Scope != "https://www.googleapis.com/auth/firebase.messaging" ||
		claims.Expiry == nil || claims.IssuedAt == nil || claims.Expiry.Time().Sub(claims.IssuedAt.Time()) > time.Hour {
		g.t.Errorf("assertion %+v: %v", claims, err)
		w.WriteHeader(400)
		return
	}
	if g.answer != nil {
		g.answer(w, token)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"access_token": token, "expires_in": 3600, "token_type": "Bearer"})
}

// credentials is the file of the service account.
func (g *google) credentials() string {
	der, err := x509.MarshalPKCS8PrivateKey(serviceKey())
	if err != nil {
		g.t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "shop-1", "private_key_id": "key-1", "client_email": accountMail,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": g.URL + "/token",
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}
