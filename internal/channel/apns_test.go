package channel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

var appleKey = sync.OnceValue(func() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
})

func p8(t testing.TB, key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func newTestAPNs(t testing.TB, server *httptest.Server, cfg APNsConfig) *APNs {
	t.Helper()
	cfg.BaseURL, cfg.Roots = server.URL, roots(server)
	return newAPNsTo(t, cfg)
}

// newAPNsTo returns a channel to where the base URL leads.
func newAPNsTo(t testing.TB, cfg APNsConfig) *APNs {
	t.Helper()
	cfg.Key, cfg.KeyID, cfg.TeamID, cfg.Topic = p8(t, appleKey()), "KEY1234567", "TEAM123456", "com.example.shop"
	a, err := NewAPNs(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.client.Close)
	return a
}

func apnsPush() push.Push {
	p := testPush()
	p.To = markDevice
	return p
}

// apple is a server that demands what APNs demands, and answers with a reason.
type apple struct {
	*httptest.Server
	status int
	reason string

	mu     sync.Mutex
	tokens []string
	bodies []string
	heads  []http.Header
}

func newApple(t *testing.T, status int, reason string) *apple {
	a := &apple{status: status, reason: reason}
	a.Server = http2Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		token, found := strings.CutPrefix(r.Header.Get("Authorization"), "bearer ")
		var claims jwt.Claims
		head, err := verified(token, jose.ES256, &appleKey().PublicKey, &claims)
		if !found || err != nil || head.KeyID != "KEY1234567" || claims.Issuer != "TEAM123456" || claims.IssuedAt == nil {
			t.Errorf("token %q: %v", token, err)
		}
		if r.Proto != "HTTP/2.0" || r.Method != http.MethodPost || r.URL.Path != "/3/device/"+markDevice {
			t.Errorf("%s %s %s", r.Proto, r.Method, r.URL.Path)
		}
		a.mu.Lock()
		a.tokens, a.bodies, a.heads = append(a.tokens, token), append(a.bodies, string(body)), append(a.heads, r.Header)
		a.mu.Unlock()
		w.Header().Set("Apns-Id", r.Header.Get("Apns-Id"))
		w.WriteHeader(a.status)
		if a.status != 200 {
			json.NewEncoder(w).Encode(map[string]any{"reason": a.reason, "timestamp": 1})
		}
	}))
	return a
}

func TestAPNs_Request(t *testing.T) {
	server := newApple(t, 200, "")
	p := apnsPush()
	p.Message = json.RawMessage(`{"title":"Sale","body":"50% <off>","data":{"deep":{"n":1.50}},"aps":{"sound":"default","badge":3,"alert":"x"}}`)
	p.ExpiresAt = testNow().Add(90 * time.Second)
	got := newTestAPNs(t, server.Server, APNsConfig{Connection: testConnection(0)}).Send(t.Context(), p, 1)
	if diff := cmp.Diff(Result{Outcome: push.Delivered, ProviderMessageID: p.ID.String()}, got, notWhen); diff != "" || got.Handed.IsZero() {
		t.Errorf("handed %s, result (-want +got):\n%s", got.Handed, diff)
	}
	want := `{"aps":{"alert":{"body":"50% <off>","title":"Sale"},"badge":3,"sound":"default"},"deep":{"n":1.50}}`
	if diff := cmp.Diff([]string{want}, server.bodies); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"Apns-Topic": "com.example.shop", "Apns-Id": p.ID.String(), "Apns-Push-Type": "alert", "Apns-Priority": "10", "Apns-Expiration": "1796112090",
	} {
		if got := server.heads[0].Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// A provider token is renewed neither too late nor too often.
func TestAPNs_ProviderTokenRenewal(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		steps  []time.Duration
		want   int // tokens
	}{
		{"serves for forty minutes", 200, []time.Duration{0, 39 * time.Minute}, 1},
		{"not for longer", 200, []time.Duration{0, 40 * time.Minute}, 2},
		{"made when the clock was ahead", 200, []time.Duration{0, -time.Hour}, 2},
		{"refused when it is young", 403, []time.Duration{0, time.Minute, 18 * time.Minute}, 1},
		{"refused when it is old", 403, []time.Duration{0, 20 * time.Minute, time.Minute}, 2},
		{"another refusal", 400, []time.Duration{0, 20 * time.Minute, time.Minute}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now, server := testNow(), newApple(t, tt.status, "ExpiredProviderToken")
			a := newTestAPNs(t, server.Server, APNsConfig{Connection: Connection{Name: "push", AllowPrivateAddresses: true, Now: func() time.Time { return now }}})
			for _, in := range tt.steps {
				now = now.Add(in)
				a.Send(t.Context(), apnsPush(), 1)
			}
			different := map[string]bool{}
			for _, token := range server.tokens {
				different[token] = true
			}
			if len(server.tokens) != len(tt.steps) || len(different) != tt.want {
				t.Errorf("%d tokens in %d requests, want %d in %d", len(different), len(server.tokens), tt.want, len(tt.steps))
			}
		})
	}
}

// The reason determines whether a refusal is permanent, not the status.
func TestAPNs_Errors(t *testing.T) {
	for _, tt := range []struct {
		status int
		reason string
		want   Result
	}{
		{410, "Unregistered", Result{Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 410 Gone, Unregistered: the app was removed from the device"}},
		{410, "ExpiredToken", Result{Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 410 Gone, ExpiredToken: the device token has expired"}},
		{410, markSecret, Result{Error: "the provider answered 410 Gone"}},
		{400, "BadDeviceToken", Result{Final: true, Error: "the provider answered 400 Bad Request, BadDeviceToken: not a device token, or one of the other environment"}},
		{400, "DeviceTokenNotForTopic", Result{Final: true, Error: "the provider answered 400 Bad Request, DeviceTokenNotForTopic: the device token belongs to another app"}},
		{413, "PayloadTooLarge", Result{Final: true, Error: "the provider answered 413 Request Entity Too Large, PayloadTooLarge: the message is too large"}},
		{403, "InvalidProviderToken", Result{Error: "the provider answered 403 Forbidden, InvalidProviderToken: the key, key_id or team_id is not valid"}},
		{429, "TooManyRequests", Result{OneAddress: true, Error: "the provider answered 429 Too Many Requests, TooManyRequests: too many messages for this device"}},
		{500, "InternalServerError", Result{Outcome: push.Unknown, Error: "the provider answered 500 Internal Server Error"}},
		{503, "Shutdown", Result{Outcome: push.Unknown, Error: "the provider answered 503 Service Unavailable"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if tt.want.Outcome == "" {
				tt.want.Outcome = push.Refused
			}
			got := newTestAPNs(t, newApple(t, tt.status, tt.reason).Server, APNsConfig{Connection: testConnection(0)}).Send(t.Context(), apnsPush(), 1)
			if diff := cmp.Diff(tt.want, got, notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// Nothing is sent to a server that does not speak HTTP/2.
func TestAPNs_HTTP2Only(t *testing.T) {
	asked := false
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(server.Close)
	got := newTestAPNs(t, server, APNsConfig{Connection: testConnection(5 * time.Second)}).Send(t.Context(), apnsPush(), 1)
	if got.Outcome == push.Delivered || asked {
		t.Errorf("got %+v, asked %t", got, asked)
	}
}

// The outcome of a request is unknown when its connection is cut.
func TestAPNs_ConnectionCut(t *testing.T) {
	var server *httptest.Server
	server = http2Server(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { server.CloseClientConnections() }))
	got := newTestAPNs(t, server, APNsConfig{Connection: testConnection(5 * time.Second)}).Send(t.Context(), apnsPush(), 1)
	if got.Outcome != push.Unknown {
		t.Errorf("got %+v", got)
	}
	checkError(t, got.Error)
}

func TestAPNs_BadSettings(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := APNsConfig{Connection: testConnection(0), Key: p8(t, appleKey()), KeyID: "k", TeamID: "t", Topic: "x"}
	for name, tt := range map[string]struct {
		change func(*APNsConfig)
		want   string
	}{
		"no PEM":        {func(c *APNsConfig) { c.Key = markSecret }, "key is not the text of a .p8 file"},
		"RSA":           {func(c *APNsConfig) { c.Key = p8(t, (*rsa.PrivateKey)(serviceKey())) }, "key is not the text of a .p8 file"},
		"another curve": {func(c *APNsConfig) { c.Key = p8(t, p384) }, "key is not the text of a .p8 file"},
		"no team":       {func(c *APNsConfig) { c.TeamID = "" }, "team_id is missing"},
		"plain":         {func(c *APNsConfig) { c.BaseURL = "http://" + markSecret }, "base_url is not an absolute https URL"},
	} {
		cfg := good
		tt.change(&cfg)
		_, err := NewAPNs(cfg)
		if err == nil || !strings.HasPrefix(err.Error(), "channel push: "+tt.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkError(t, err.Error())
	}
}
