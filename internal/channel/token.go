package channel

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// inLines restores the line breaks of a PEM key that stands in one line, written as \n, as in environment variables.
func inLines(text string) []byte { return []byte(strings.ReplaceAll(text, `\n`, "\n")) }

// privateKey reads the first block of a text in PEM: a private key in PKCS #8, or in the older form of its kind.
func privateKey[K any](text string, older func(der []byte) (*K, error)) (key *K, ok bool) {
	block, _ := pem.Decode(inLines(text))
	if block == nil {
		return nil, false
	}
	if key, err := older(block.Bytes); err == nil {
		return key, true
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, false
	}
	key, ok = parsed.(*K)
	return key, ok
}

// sign returns a JSON Web Token of claims. An empty key id is left out.
func sign(alg jose.SignatureAlgorithm, key any, keyID string, claims map[string]any) (string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: keyID}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}
