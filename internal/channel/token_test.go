package channel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// verified reads the claims of a token if its signature holds.
func verified(token string, alg jose.SignatureAlgorithm, key, claims any) (jose.Header, error) {
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{alg})
	if err != nil {
		return jose.Header{}, err
	}
	return parsed.Headers[0], parsed.Claims(key, claims)
}

// TestPrivateKey reads both forms of each kind of key, also in one line, and nothing else.
func TestPrivateKey(t *testing.T) {
	inPEM := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(ec)
	older := inPEM("EC PRIVATE KEY", sec1, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(ec)
	ofEC := inPEM("PRIVATE KEY", pkcs8, err)
	pkcs8, err = x509.MarshalPKCS8PrivateKey(serviceKey())
	ofRSA := inPEM("PRIVATE KEY", pkcs8, err)
	for text, is := range map[string]struct{ ec, rsa bool }{
		older: {ec: true}, ofEC: {ec: true}, strings.ReplaceAll(ofEC, "\n", `\n`): {ec: true},
		ofRSA: {rsa: true}, inPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(serviceKey()), nil): {rsa: true},
		"": {}, "no key": {}, inPEM("PRIVATE KEY", []byte("no key"), nil): {},
	} {
		_, isEC := privateKey(text, x509.ParseECPrivateKey)
		_, isRSA := privateKey(text, x509.ParsePKCS1PrivateKey)
		if isEC != is.ec || isRSA != is.rsa {
			t.Errorf("EC: %t, RSA: %t, for a text of %d bytes", isEC, isRSA, len(text))
		}
	}
}

// TestSign_Head: a token has the id of the key, and none if there is none.
func TestSign_Head(t *testing.T) {
	for id, want := range map[string]string{"k1": `{"alg":"RS256","kid":"k1","typ":"JWT"}`, "": `{"alg":"RS256","typ":"JWT"}`} {
		token, err := sign(jose.RS256, serviceKey(), id, map[string]any{"iss": "x"})
		if err != nil {
			t.Fatal(err)
		}
		head, err := verified(token, jose.RS256, &serviceKey().PublicKey, &struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{"alg": head.Algorithm, "typ": head.ExtraHeaders[jose.HeaderType]}
		if head.KeyID != "" {
			got["kid"] = head.KeyID
		}
		if text, _ := json.Marshal(got); string(text) != want {
			t.Errorf("%s, want %s", text, want)
		}
	}
}
