package receipt

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	snsARN  = "arn:aws:sns:eu-west-1:123456789012:ses-events"
	snsHost = "https://sns.eu-west-1.amazonaws.com"
	snsCert = snsHost + "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem"
)

var snsNow = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// snsKey is the key that signs the messages of the tests.
var snsKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// selfSigned returns a certificate that is valid around snsNow.
func selfSigned(key crypto.Signer, change func(*x509.Certificate)) []byte {
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: snsNow.Add(-time.Hour), NotAfter: snsNow.Add(1000 * time.Hour)}
	if change != nil {
		change(c)
	}
	der := must(x509.CreateCertificate(rand.Reader, c, c, key.Public(), key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var snsPEM = sync.OnceValue(func() []byte { return selfSigned(snsKey(), nil) })

// newTestSES returns a reader whose certificates come from fetch.
func newTestSES(t testing.TB, fetch Fetch) *SES {
	t.Helper()
	s, err := NewSES(snsARN, fetch)
	if err != nil {
		t.Fatal(err)
	}
	s.certs.now = func() time.Time { return snsNow }
	return s
}

func fetches(text []byte) Fetch {
	return func(context.Context, string) ([]byte, error) { return text, nil }
}

// notification returns an unsigned notification.
func notification(message string) snsEnvelope {
	return snsEnvelope{Type: snsNotification, MessageID: "m-1", TopicArn: snsARN, Message: message, Timestamp: "2026-02-12T17:43:00.123Z", SignatureVersion: "2", SigningCertURL: snsCert}
}

func subscription(confirm string) snsEnvelope {
	e := notification("You have chosen to subscribe")
	e.Type, e.Token, e.SubscribeURL = snsSubscribed, "t", confirm
	return e
}

// signed signs a message and returns the request.
func (e snsEnvelope) signed() Request {
	if hash, digest := e.digest(); digest != nil {
		e.Signature = base64.StdEncoding.EncodeToString(must(rsa.SignPKCS1v15(rand.Reader, snsKey(), hash, digest)))
	}
	return e.request()
}

func (e snsEnvelope) request() Request { return Request{Body: must(json.Marshal(e))} }

// Two verifiers of others and ours agree on every message. One of them does not know what an UnsubscribeConfirmation
// signs.
func TestSNS_OtherVerifiers(t *testing.T) {
	var fetched atomic.Int32
	s := newTestSES(t, func(_ context.Context, url string) ([]byte, error) {
		fetched.Add(1)
		if url != snsCert {
			t.Errorf("fetched %s", url)
		}
		return file(t, "sns.pem"), nil
	})
	valid, receipts := 0, 0
	for _, tt := range lines[struct {
		Body                              string
		SNSValidator, SNSPayloadValidator bool
	}](t, "sns.jsonl") {
		report, err := s.Read(t.Context(), Request{Body: []byte(tt.Body)})
		checkReport(t, report, err)
		if (err == nil) != tt.SNSPayloadValidator || tt.SNSValidator != tt.SNSPayloadValidator && !strings.Contains(tt.Body, snsUnsubscribed) {
			t.Errorf("%v: %s", err, tt.Body)
		}
		if err == nil {
			valid++
			receipts += len(report.Receipts)
		}
	}
	if valid < 20 || receipts < 12 || fetched.Load() != 1 {
		t.Errorf("%d messages are valid, with %d receipts; %d certificates were fetched", valid, receipts, fetched.Load())
	}
}

// A refused address of a certificate, or another topic, makes no request.
func TestSNS_NoRequest(t *testing.T) {
	for name, change := range map[string]func(*snsEnvelope){
		"http":                     func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, "https", "http", 1) },
		"another host":             func(e *snsEnvelope) { e.SigningCertURL = "https://example.com/SimpleNotificationService-1.pem" },
		"a host that ends so":      func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, "//", "//evil", 1) },
		"a host that begins so":    func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, ".com/", ".com.example.com/", 1) },
		"a user":                   func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, ".com/", ".com@example.com/", 1) },
		"a port":                   func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, ".com/", ".com:8443/", 1) },
		"another region":           func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, "eu-west-1", "us-east-1", 1) },
		"another service":          func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, "sns.", "s3.", 1) },
		"China":                    func(e *snsEnvelope) { e.SigningCertURL = strings.Replace(snsCert, ".com/", ".com.cn/", 1) },
		"another file":             func(e *snsEnvelope) { e.SigningCertURL = snsHost + "/evil.pem" },
		"a folder":                 func(e *snsEnvelope) { e.SigningCertURL = snsHost + "/x/../SimpleNotificationService-1.pem" },
		"a query":                  func(e *snsEnvelope) { e.SigningCertURL = snsCert + "?x=.pem" },
		"a query before the end":   func(e *snsEnvelope) { e.SigningCertURL = snsHost + "/?SimpleNotificationService-1.pem" },
		"a line break":             func(e *snsEnvelope) { e.SigningCertURL = snsCert + "\n" },
		"capitals":                 func(e *snsEnvelope) { e.SigningCertURL = strings.ToUpper(snsCert) },
		"no certificate":           func(e *snsEnvelope) { e.SigningCertURL = "" },
		"another topic":            func(e *snsEnvelope) { e.TopicArn += "x" },
		"no topic":                 func(e *snsEnvelope) { e.TopicArn = "" },
		"another type":             func(e *snsEnvelope) { e.Type = "Other" },
		"another version":          func(e *snsEnvelope) { e.SignatureVersion = "3" },
		"a confirmation elsewhere": func(e *snsEnvelope) { e.Type, e.TopicArn = snsSubscribed, strings.Replace(snsARN, "1234", "4321", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSES(t, func(_ context.Context, url string) ([]byte, error) {
				t.Errorf("fetched %s", url)
				return snsPEM(), nil
			})
			e := notification(`{"eventType":"Delivery"}`)
			change(&e)
			report, err := s.Read(t.Context(), e.signed())
			checkRefused(t, report, err)
		})
	}
}

func TestSNS_Refused(t *testing.T) {
	right := notification(`{"eventType":"Delivery"}`)
	unsigned := right
	unsigned.Signature = base64.StdEncoding.EncodeToString([]byte("nonsense"))
	for name, r := range map[string]Request{
		"nonsense":          {Body: []byte("nonsense")},
		"nothing":           {},
		"an array":          {Body: []byte("[]")},
		"no signature":      right.request(),
		"another signature": unsigned.request(),
		"too large":         notification(strings.Repeat("x", MaxBody)).signed(),
		"raw delivery":      {Body: []byte(`{"eventType":"Delivery","mail":{}}`)},
	} {
		report, err := newTestSES(t, fetches(snsPEM())).Read(t.Context(), r)
		if checkRefused(t, report, err); name == "raw delivery" && !strings.Contains(err.Error(), "raw message delivery") {
			t.Error(err)
		}
	}
	for name, text := range map[string][]byte{
		"expired":       selfSigned(snsKey(), func(c *x509.Certificate) { c.NotAfter = snsNow.Add(-time.Minute) }),
		"not yet valid": selfSigned(snsKey(), func(c *x509.Certificate) { c.NotBefore = snsNow.Add(time.Minute) }),
		"of ECDSA":      selfSigned(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), nil),
		"of another":    selfSigned(must(rsa.GenerateKey(rand.Reader, 2048)), nil),
	} {
		t.Run("a certificate "+name, func(t *testing.T) {
			report, err := newTestSES(t, fetches(text)).Read(t.Context(), right.signed())
			checkRefused(t, report, err)
		})
	}
}

// A certificate that cannot be fetched or was cut off makes the provider repeat the request. Fetches are bounded.
func TestSNS_Unavailable(t *testing.T) {
	var answer func() ([]byte, error)
	count := 0
	s := newTestSES(t, func(context.Context, string) ([]byte, error) { count++; return answer() })
	for _, answer = range []func() ([]byte, error){
		func() ([]byte, error) { return nil, errors.New("refused at 10.0.0.1") },
		func() ([]byte, error) { return snsPEM()[:200], nil },
		func() ([]byte, error) {
			return []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), nil
		},
	} {
		report, err := s.Read(t.Context(), notification("{}").signed())
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRefused) || !empty(report) || strings.Contains(err.Error(), "10.0.0.1") {
			t.Errorf("%v %+v", err, report)
		}
	}
	for i := range 100 {
		e := notification("{}")
		e.SigningCertURL = fmt.Sprintf("%s/SimpleNotificationService-%d.pem", snsHost, i)
		s.Read(t.Context(), e.signed())
	}
	if count != maxFetches {
		t.Errorf("%d fetches in a minute", count)
	}
	answer = fetches(snsPEM()).once
	s.certs.now = func() time.Time { return snsNow.Add(fetchPeriod) }
	if _, err := s.Read(t.Context(), notification("{}").signed()); err != nil {
		t.Errorf("a minute later: %v", err)
	}
}

func (f Fetch) once() ([]byte, error) { return f(context.Background(), "") }

// The keys of certificates are kept for a day, in bounded number, and not beyond their end.
func TestSNS_CertificatesKept(t *testing.T) {
	now, count := snsNow, 0
	text := selfSigned(snsKey(), func(c *x509.Certificate) { c.NotAfter = snsNow.Add(30 * time.Hour) })
	s := newTestSES(t, func(context.Context, string) ([]byte, error) { count++; return text, nil })
	s.certs.now = func() time.Time { return now }
	read := func(i int) error {
		e := notification("{}")
		e.SigningCertURL = fmt.Sprintf("%s/SimpleNotificationService-%d.pem", snsHost, i)
		_, err := s.Read(t.Context(), e.signed())
		return err
	}
	for _, step := range []struct {
		after time.Duration
		total int
		ok    bool
	}{{0, 1, true}, {23 * time.Hour, 1, true}, {24 * time.Hour, 2, true}, {29 * time.Hour, 2, true}, {30*time.Hour + time.Minute, 3, false}} {
		now = snsNow.Add(step.after)
		if err := read(0); (err == nil) != step.ok || count != step.total {
			t.Errorf("after %v: %v, %d fetches", step.after, err, count)
		}
	}
	now = snsNow
	for i := range 3 * maxCertificates {
		now = now.Add(fetchPeriod)
		if err := read(i); err != nil || len(s.certs.kept) > maxCertificates {
			t.Fatalf("%v, %d are kept", err, len(s.certs.kept))
		}
	}
}

// While a certificate is fetched, others that need one wait for the same fetch, or until their request ends.
func TestSNS_OneFetch(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	count := 0
	s := newTestSES(t, func(context.Context, string) ([]byte, error) {
		count++
		close(begun) // panics at a second fetch
		<-release
		return snsPEM(), nil
	})
	r := notification("{}").signed()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := s.Read(context.Background(), r); err != nil {
				t.Error(err)
			}
		})
	}
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Read(ended, r); !errors.Is(err, ErrUnavailable) {
		t.Error(err)
	}
	close(release)
	all.Wait()
	if count != 1 {
		t.Errorf("%d fetches", count)
	}
}

func TestNewSES_Topics(t *testing.T) {
	for arn, host := range map[string]string{
		snsARN: "sns.eu-west-1.amazonaws.com",
		"arn:aws-cn:sns:cn-north-1:123456789012:x":        "sns.cn-north-1.amazonaws.com.cn",
		"arn:aws-us-gov:sns:us-gov-west-1:123456789012:x": "sns.us-gov-west-1.amazonaws.com",
		"": "", "ses-events": "", snsARN + ":sub": "", "arn:aws:sqs:eu-west-1:123456789012:x": "",
		"arn:aws:sns:evil.com/:123456789012:x": "", "arn:aws:sns:eu-west-1:1:x": "", snsARN + "\n": "",
	} {
		s, err := NewSES(arn, nil)
		if (err == nil) != (host != "") || err == nil && s.topic.host != host {
			t.Errorf("%q: %v", arn, err)
		}
	}
}
