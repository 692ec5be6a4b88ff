package app

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The marks stand for data that must not appear.
const (
	markSecret    = "MARKSECRET0123456789"
	markRecipient = "MARKRECIPIENT"
	markText      = "MARKTEXT"
	markAddress   = "MARKADDRESS"
	markNumber    = "+4599887766"
	markDevice    = "deadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef"
)

// parrot is a provider that refuses every push, and repeats the whole
// request. It grants access tokens.
func parrot(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/token" {
			fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600}`, markSecret)
			return
		}
		all := fmt.Sprint(r.Header, string(body))
		if !strings.Contains(all, markText+"1") {
			w.WriteHeader(400)
			_ = json.NewEncoder(w).Encode(map[string]any{"code": 12345, "message": all, "reason": all, "error": map[string]any{"status": all, "message": all}})
			return
		}
		// As a status line, which net/http quotes in its error.
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprintf(c, "%s\r\n\r\n", strings.ReplaceAll(all, "\n", " "))
			_ = c.Close()
		}
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	return server.URL
}

// mailParrot is the same for e-mail.
func mailParrot(t *testing.T) (port int) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "220 parrot\r\n")
				for in := bufio.NewScanner(c); in.Scan(); {
					if line := in.Text(); strings.HasPrefix(line, "RCPT") {
						fmt.Fprintf(c, "550 5.1.1 %s\r\n", line)
						continue
					}
					fmt.Fprint(c, "250 Ok\r\n")
				}
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// secretsConfig writes a file with a channel of each type, with parrots as
// providers. It returns the environment for it, and the secrets in it.
func secretsConfig(t *testing.T) (environ, keys []string) {
	keyOf := func(key any, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, base64.StdEncoding.EncodeToString(der)[40:80])
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	url := parrot(t)
	account, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "p", "client_email": "a@b", "token_uri": url + "/token",
		"private_key": keyOf(rsa.GenerateKey(rand.Reader, 2048))})
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key.p8")
	if err := os.WriteFile(keyFile, []byte(keyOf(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sendquota.yaml")
	const again = "max_attempts: 2, backoff: {first: 100ms, max: 100ms}, timeout: 2s, allow_private_addresses: true"
	text := fmt.Sprintf(`policy: {rules: []}
http: {drain: 0s}
channels:
  webhook: {type: webhook, url: "%[1]s/?${MARK}", secret: "${MARK}", previous_secret: "${MARK}", %[2]s}
  sms: {type: sms, account_sid: AC1, auth_token: "${MARK}", from: "+4511111111", base_url: "%[1]s", %[2]s}
  fcm: {type: fcm, credentials: "${ACCOUNT}", base_url: "%[1]s", %[2]s}
  apns: {type: apns, key_file: %[4]q, key_id: ABCDE12345, team_id: ABCDE12345, topic: x, base_url: "%[5]s", %[2]s}
  email: {type: email, host: 127.0.0.1, port: %[3]d, tls: none, from: a@b.example, %[2]s}
`, url, again, mailParrot(t), keyFile, strings.Replace(url, "http:", "https:", 1))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"SENDQUOTA_ADDR=127.0.0.1:0", "SENDQUOTA_LOG_LEVEL=debug", "SENDQUOTA_CONFIG=" + file, "MARK=" + markSecret, "ACCOUNT=" + string(account),
		"DATABASE_URL=" + testenv.Postgres(t), "REDIS_URL=" + testenv.Redis(t)}, append(keys, markSecret)
}

// TestSecrets_NotShown sends through a channel of each type, to providers
// that repeat the whole request. No secret, message, recipient or address is
// in the log, in a metric, or in the reason of a failure.
func TestSecrets_NotShown(t *testing.T) {
	environ, keys := secretsConfig(t)
	cfg, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	var logged testenv.Buffer
	logger := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: cfg.LogLevel}))
	a, err := Open(t.Context(), cfg, logger)
	if err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- a.RunBoth(ctx, ready) }()
	api := "http://" + <-ready
	tenant, _, err := a.store.CreateTenant(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := a.store.CreateKey(t.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t, api, key}
	var ids []string
	for channel, to := range map[string]string{"webhook": markAddress, "sms": markNumber, "fcm": markAddress + ":" + strings.Repeat("x", 40), "apns": markDevice, "email": markAddress + "@example.com"} {
		for _, text := range []string{markText, markText + "1"} { // for each of the parrot's ways
			ask := fmt.Sprintf(`{"recipient":%q,"channel":%q,"to":%q,"message":{"title":%q,"body":%q},"metadata":{"x":%q}}`, markRecipient+uuid.NewString(), channel, to, text, text, markText)
			id, _ := c.ask("POST", "/v1/pushes", ask)["id"].(string)
			ids = append(ids, id)
		}
		c.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient":%q,"channel":%q,"to":%q,"message":{"body":1,"html":2,"data":3}}`, markRecipient, channel, " "+to)) // refused
	}
	seen := ""
	for _, id := range ids {
		seen += c.failure(id)
	}
	metrics := c.text("GET", "/metrics", "")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(metrics, `sendquota_unregistered_addresses_total{channel="email"} 2`) || strings.Count(logged.String(), "push attempted") < 10 {
		t.Errorf("the metrics or the log do not show the failures:\n%s\n%s", metrics, logged.String())
	}
	for where, text := range map[string]string{"the reasons of failures": seen, "the log": logged.String(), "the metrics": metrics} {
		for _, mark := range append(keys, markRecipient, markText, markAddress, markNumber, markDevice) {
			if at := strings.Index(text, mark); at >= 0 {
				t.Errorf("%s in %s: …%s…", mark, where, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

// caller asks the API.
type caller struct {
	t        *testing.T
	api, key string
}

func (c caller) text(method, path, body string) string {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.api+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

func (c caller) ask(method, path, body string) map[string]any {
	c.t.Helper()
	var answer map[string]any
	if text := c.text(method, path, body); json.Unmarshal([]byte(text), &answer) != nil {
		c.t.Fatalf("%s %s: %s", method, path, text)
	}
	return answer
}

// failure waits until a push has failed, and returns all texts about the
// reason.
func (c caller) failure(id string) string {
	c.t.Helper()
	var reasons string
	testenv.Until(c.t, 50*time.Millisecond, "push "+id+" fails", func() bool {
		p := c.ask("GET", "/v1/pushes/"+id, "")
		if p["status"] == "sent" {
			c.t.Fatalf("push %s was sent", id)
		}
		if p["status"] != "failed" {
			return false
		}
		reasons = fmt.Sprintln(p["channel"], p["last_error"])
		sends, _ := p["sends"].([]any)
		for _, s := range sends {
			reasons += fmt.Sprintln(s.(map[string]any)["error"], s.(map[string]any)["provider_message_id"])
		}
		return true
	})
	return reasons
}
