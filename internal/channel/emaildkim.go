package channel

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dkim"
	"golang.org/x/net/idna"
)

// DKIM configures the signature of e-mails (RFC 6376). Without a domain there is none.
type DKIM struct {
	Domain   string
	Selector string
	Key      string // PEM: RSA of at least 1024 bits, or Ed25519
}

// leastRSA is the shortest key that a receiver must verify (RFC 8301); 2048 bits are usual.
const leastRSA = 1024 // bits

// signedHeaders are the headers that a signature covers if a mail has them.
var signedHeaders = []string{
	"From", "To", "Cc", "Reply-To", "Subject", "Date", "Message-ID", "MIME-Version", "Content-Type", "List-Unsubscribe", "List-Unsubscribe-Post",
}

var selectorShape = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// dkimSigner signs e-mails.
type dkimSigner struct {
	domain, selector string
	key              crypto.Signer
}

// newDKIMSigner returns a signer, or else an error and the setting that it is about.
func newDKIMSigner(cfg DKIM) (s *dkimSigner, setting string, err error) {
	s = &dkimSigner{selector: cfg.Selector}
	if s.domain, err = idna.Lookup.ToASCII(cfg.Domain); err != nil {
		return nil, "dkim.domain", errors.New("is not a domain")
	}
	if !selectorShape.MatchString(cfg.Selector) {
		return nil, "dkim.selector", errors.New("is not a selector: letters, digits, dashes and dots")
	}
	if s.key, err = signingKey(cfg.Key); err != nil {
		return nil, "dkim.key_file", err
	}
	return s, "", nil
}

// signingKey parses a private key. Its errors quote nothing of the text.
func signingKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("has no private key in PEM form")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("has no private key in PEM form, of PKCS #8 or PKCS #1")
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < leastRSA {
			return nil, errors.New("has an RSA key of less than 1024 bits, which receivers ignore")
		}
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	}
	return nil, errors.New("must have an RSA or an Ed25519 key")
}

// sign returns a mail with its signature. It counts one From more than there is, so that none can be added (RFC 6376, 8.15).
func (s *dkimSigner) sign(text []byte) ([]byte, error) {
	keys := []string{"From"}
	head, _, _ := strings.Cut(string(text), "\r\n\r\n")
	for line := range strings.SplitSeq(head, "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		if slices.ContainsFunc(signedHeaders, func(one string) bool { return strings.EqualFold(one, name) }) {
			keys = append(keys, name)
		}
	}
	signer, err := dkim.NewSigner(&dkim.SignOptions{
		Domain: s.domain, Selector: s.selector, Signer: s.key, Hash: crypto.SHA256, HeaderKeys: keys,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		return nil, err
	}
	_, err = signer.Write(text)
	if wrong := signer.Close(); err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return append([]byte(signer.Signature()), text...), nil
}
