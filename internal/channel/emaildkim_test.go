package channel

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	netmail "net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/sendquota/sendquota/internal/push"
)

// privatePEM returns the text of a private key.
func privatePEM(t testing.TB, key crypto.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// keysOfDKIM returns an RSA key and an Ed25519 key, with their records in the DNS.
func keysOfDKIM(t testing.TB) map[string]struct{ key, record string } {
	t.Helper()
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, short, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&long.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	old := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(long)}))
	rsaRecord := "v=DKIM1; k=rsa; p=" + base64.StdEncoding.EncodeToString(der)
	return map[string]struct{ key, record string }{
		"RSA":            {privatePEM(t, long), rsaRecord},
		"RSA in PKCS #1": {old, rsaRecord},
		"Ed25519":        {privatePEM(t, short), "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)},
	}
}

// verifyDKIM returns the headers that the valid signature of a mail covers.
func verifyDKIM(text []byte, record string) ([]string, error) {
	all, err := dkim.VerifyWithOptions(bytes.NewReader(text), &dkim.VerifyOptions{LookupTXT: func(name string) ([]string, error) {
		if name != "s1._domainkey.xn--bcher-kva.example" {
			return nil, errors.New("no record " + name)
		}
		return []string{record}, nil
	}})
	if err != nil || len(all) != 1 {
		return nil, errors.Join(err, errors.New("no signature"))
	}
	return all[0].HeaderKeys, all[0].Err
}

// TestEmail_DKIM: a signature is valid, covers what RFC 8058 demands, and is broken by a changed body, a changed header and a
// second From.
func TestEmail_DKIM(t *testing.T) {
	t.Parallel()
	for name, one := range keysOfDKIM(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newMailServer(t, mailSetup{})
			e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample), ReplyTo: "help@example.com", DKIM: DKIM{"BÜCHER.example", "s1", one.key}})
			p := emailPush(`{"title":"Grüße","body":"One\n.\n..two \n\n","html":"<p>","cc":"ben@example.com","headers":{"X-A":"b"},"attachments":[{"name":"a","content":"AAAA"}]}`)
			p.Unsubscribe = "https://sq.example.com/u/token"
			if r := e.Send(t.Context(), p, 1); r.Outcome != push.Delivered {
				t.Fatalf("%+v", r)
			}
			got := server.messages()[0].data
			keys, err := verifyDKIM([]byte(got), one.record)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			slices.Sort(keys)
			if want := "Cc Content-Type Date From From List-Unsubscribe List-Unsubscribe-Post MIME-Version Message-ID Reply-To Subject To"; strings.Join(keys, " ") != want {
				t.Errorf("it covers %q", keys)
			}
			for _, change := range [][2]string{{"<p>", "<b>"}, {"ben@example.com", "eve@example.com"}, {"/u/token", "/u/other"}, {"One-Click", "Two-Click"}, {"To: ", "From: eve@example.com\r\nTo: "}} {
				changed := strings.Replace(got, change[0], change[1], 1)
				if _, err := verifyDKIM([]byte(changed), one.record); err == nil || changed == got {
					t.Errorf("it is valid with %s instead of %s", change[1], change[0])
				}
			}
		})
	}
}

// TestEmail_Unsubscribe: a mail has the two headers of RFC 8058 if its push has a link, and no others.
func TestEmail_Unsubscribe(t *testing.T) {
	t.Parallel()
	e := sendingEmail(t, EmailConfig{})
	for link, want := range map[string][2]string{
		"": {}, "https://sq.example.com/u/" + strings.Repeat("x", 300): {"<https://sq.example.com/u/" + strings.Repeat("x", 300) + ">", "List-Unsubscribe=One-Click"},
	} {
		p := emailPush(`{"body":"x"}`)
		p.Unsubscribe = link
		m, err := netmail.ReadMessage(bytes.NewReader(mailOf(t, e, p).text))
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]string{m.Header.Get("List-Unsubscribe"), m.Header.Get("List-Unsubscribe-Post")}; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestEmail_BounceAddress: the envelope comes from the bounce address of the push, whatever sender the message has.
func TestEmail_BounceAddress(t *testing.T) {
	t.Parallel()
	server := newMailServer(t, mailSetup{})
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(ample), AllowedFrom: []string{"help@example.com"}, BounceAddress: "Bounces+{id}@BÜCHER.example"})
	p := emailPush(`{"body":"x","from":"help@example.com"}`)
	for range 2 {
		e.Send(t.Context(), p, 1)
	}
	for _, m := range server.messages() {
		if want := "FROM:<Bounces+" + p.ID.String() + "@xn--bcher-kva.example>"; !strings.HasPrefix(m.from, want) || !strings.Contains(m.data, "From: <help@example.com>") {
			t.Errorf("from %s, want %s\n%s", m.from, want, m.data)
		}
	}
	if n := len(server.messages()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestEmail_BadSignature: settings of signatures and bounces that are wrong are errors with their names, without a key.
func TestEmail_BadSignature(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	weak, err := rsa.GenerateKey(rand.Reader, 512)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := keysOfDKIM(t)["Ed25519"].key
	for _, tt := range []struct {
		cfg  EmailConfig
		want string
	}{
		{EmailConfig{DKIM: DKIM{"a b", "s", good}}, "dkim.domain is not a domain"},
		{EmailConfig{DKIM: DKIM{"a.example", "s;t", good}}, "dkim.selector is not a selector: letters, digits, dashes and dots"},
		{EmailConfig{DKIM: DKIM{"a.example", "s", markSecret}}, "dkim.key_file has no private key in PEM form"},
		{EmailConfig{DKIM: DKIM{"a.example", "s", strings.Replace(good, "M", "N", 1)}}, "dkim.key_file has no private key in PEM form, of PKCS #8 or PKCS #1"},
		{EmailConfig{DKIM: DKIM{"a.example", "s", privatePEM(t, weak)}}, "dkim.key_file has an RSA key of less than 1024 bits, which receivers ignore"},
		{EmailConfig{DKIM: DKIM{"a.example", "s", privatePEM(t, other)}}, "dkim.key_file must have an RSA or an Ed25519 key"},
		{EmailConfig{BounceAddress: "b@example.com"}, "bounce_address must have {id} once, before the @, such as bounces+{id}@example.com"},
		{EmailConfig{BounceAddress: "{id}@{id}.example"}, "bounce_address must have {id} once, before the @, such as bounces+{id}@example.com"},
		{EmailConfig{BounceAddress: "b@{id}.example"}, "bounce_address must have {id} once, before the @, such as bounces+{id}@example.com"},
		{EmailConfig{BounceAddress: "B <b{id}@b.example>"}, "bounce_address must be an e-mail address without a name when {id} is an id of 36 characters, such as bounces+{id}@example.com"},
		{EmailConfig{BounceAddress: strings.Repeat("b", 29) + "{id}@b.example"}, "bounce_address must be an e-mail address without a name when {id} is an id of 36 characters, such as bounces+{id}@example.com"},
	} {
		tt.cfg.Connection, tt.cfg.Host, tt.cfg.From = testConnection(0), "h", "a@b.example"
		if _, err := NewEmail(tt.cfg); err == nil || err.Error() != "channel push: "+tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}
