package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// gossip has the providers of all types. They remember what they got, and accept it; a message with the word fail is refused with an
// answer that repeats the whole request.
type gossip struct {
	t     *testing.T
	http  *httptest.Server // Twilio, Google and webhooks
	tls   *httptest.Server // Apple
	mail  int              // port of SMTP over TLS
	roots string           // the file of the certificate
	mu    sync.Mutex
	heard strings.Builder
}

func newGossip(t *testing.T) *gossip {
	g := &gossip{t: t, roots: filepath.Join(t.TempDir(), "roots.pem")}
	g.http, g.tls = httptest.NewServer(http.HandlerFunc(g.serve)), httptest.NewUnstartedServer(http.HandlerFunc(g.serve))
	g.tls.EnableHTTP2, g.tls.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	g.tls.StartTLS()
	t.Cleanup(g.http.Close)
	t.Cleanup(g.tls.Close)
	write(t, g.roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.tls.Certificate().Raw})))
	listener, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: g.tls.TLS.Certificates})
	testenv.Check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	g.mail = listener.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go g.takeMail(c)
		}
	}()
	return g
}

func (g *gossip) hear(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard.WriteString(text)
}

func (g *gossip) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	all := fmt.Sprint(r.URL, r.Header, user, password, string(body))
	g.hear(all)
	switch {
	case r.URL.Path == "/token":
		_ = json.NewEncoder(w).Encode(object{"access_token": "CANARYTOKEN0123456789", "expires_in": 3600})
	case strings.Contains(all, "fail"):
		w.WriteHeader(400)
		_ = json.NewEncoder(w).Encode(object{"code": 12345, "message": all, "reason": all, "error": object{"status": all, "message": all}})
	default:
		_ = json.NewEncoder(w).Encode(object{"sid": "SM1", "name": "projects/p/messages/1"})
	}
}

func (g *gossip) takeMail(c net.Conn) {
	defer c.Close()
	said, data := "", false
	fmt.Fprint(c, "220 gossip\r\n")
	for in := bufio.NewScanner(c); in.Scan(); {
		line := in.Text()
		said += line + " "
		g.hear(line)
		switch {
		case data && line == ".":
			mail := said
			said, data = "", false // the connection is kept for other mails
			if strings.Contains(mail, "fail") {
				fmt.Fprintf(c, "550 5.0.0 %s\r\n", mail)
			} else {
				fmt.Fprint(c, "250 2.0.0 Ok: queued as A1\r\n")
			}
		case data:
		case strings.HasPrefix(line, "EHLO"):
			fmt.Fprint(c, "250-gossip\r\n250 AUTH PLAIN\r\n")
		case strings.HasPrefix(line, "AUTH"):
			plain, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "AUTH PLAIN "))
			g.hear(string(plain))
			fmt.Fprint(c, "235 Ok\r\n")
		case line == "DATA":
			data = true
			fmt.Fprint(c, "354 go\r\n")
		default:
			fmt.Fprint(c, "250 Ok\r\n")
		}
	}
}

// canaryKey makes a key, and returns its PEM with a part that must not appear.
func canaryKey(t *testing.T, key any, err error) (text, canary string) {
	t.Helper()
	testenv.Check(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	testenv.Check(t, err)
	text = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return text, strings.Split(text, "\n")[2][:30]
}

// canaries has the settings of channels with secrets that must not appear anywhere.
type canaries struct {
	words    []string // that must not appear
	settings map[string]object
}

// settingsOf returns channels of all types, for one way to make them.
func (g *gossip) settingsOf(way string) (c canaries) {
	rsaKey, rsaErr := rsa.GenerateKey(rand.Reader, 2048)
	google, part := canaryKey(g.t, rsaKey, rsaErr)
	ecKey, ecErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	apple, applePart := canaryKey(g.t, ecKey, ecErr)
	word := func(of string) string {
		w := "CANARY" + way + of + "0123456789"
		c.words = append(c.words, w)
		return w
	}
	c.words = append(c.words, part, applePart, "CANARYTOKEN")
	account, err := json.Marshal(object{"type": "service_account", "project_id": "p", "client_email": word("account") + "@example.com", "token_uri": g.http.URL + "/token", "private_key": google})
	testenv.Check(g.t, err)
	again := func(s object) object {
		s["max_attempts"], s["timeout"], s["backoff"] = 1, "5s", object{"first": "100ms", "max": "100ms"}
		return s
	}
	c.settings = map[string]object{
		"webhook": again(object{"type": "webhook", "url": g.http.URL + "/" + word("path") + "?key=" + word("query"), "secret": word("secret"), "previous_secret": word("before")}),
		"sms":     again(object{"type": "sms", "account_sid": word("sid"), "auth_token": word("token"), "from": "+4511111111", "status_callback": "https://example.com/" + word("callback"), "base_url": g.http.URL}),
		"fcm":     again(object{"type": "fcm", "credentials": string(account), "base_url": g.http.URL, "token_url": g.http.URL + "/token"}),
		"apns":    again(object{"type": "apns", "key": apple, "key_id": "ABCDE12345", "team_id": "ABCDE12345", "topic": "com.example", "base_url": g.tls.URL}),
		"email":   again(object{"type": "email", "host": "127.0.0.1", "port": g.mail, "tls": "tls", "username": word("user"), "password": word("password"), "from": "a@example.com"}),
	}
	return c
}

// faulty are requests that are refused, with canaries in places where a person may put them.
func faulty(c string) []string {
	return []string{
		`{"type":"webhook","url":"ftp://` + c + `"}`, `{"type":"webhook","url":"https://` + c + `:` + c + `@example.com/"}`, `{"type":"webhook","url":"https://example.com","secret":"` + c[:12] + `"}`,
		`{"type":"webhook","url":"https://example.com","secret":"whsec_` + c + `!"}`, `{"type":"webhook","url":"https://example.com","secret":["` + c + `"]}`, `{"type":"webhook","url":{"x":"` + c + `"}}`,
		`{"type":"webhook","url":"https://example.com","secrett":"` + c + `"}`, `{"type":"webhook","url":"https://example.com","auth_token":"` + c + `"}`, `{"type":"smss","auth_token":"` + c + `"}`,
		`{"type":"sms","account_sid":"` + c + ` x","auth_token":"` + c + `","api_key_sid":"` + c + `","api_key_secret":"${` + c + `}","base_url":"https://` + c + `@example.com"}`,
		`{"type":"apns","key":"` + c + `"}`, `{"type":"apns","key":"-----BEGIN PRIVATE KEY-----\n` + c + `\n-----END PRIVATE KEY-----"}`, `{"type":"fcm","credentials":"{\"private_key\":\"` + c + `\"}"}`,
		`{"type":"fcm","credentials":"` + c + `"}`, `{"type":"fcm","credentials":{"private_key":"` + c + `"}}`, `{"type":"email","host":"!","password":"` + c + `"}`, `{"type":"sms","auth_token":"` + c + `","auth_token":"x"}`,
		`{"type":"sms","auth_token":"` + c, `["` + c + `"]`, `"` + c + `"`,
	}
}

// addresses has an address for each type.
var addresses = map[string]string{"webhook": "", "sms": "+4599887766", "fcm": strings.Repeat("x", 60), "apns": strings.Repeat("deadbeef", 8), "email": "anna@example.com"}

// TestTenantChannels_SecretsHidden: channels of every type are made over REST, with the tool and in the console, and used with providers
// that accept, and that refuse and repeat the request. No secret of them is in the database, in Redis, in a log, in metrics, in an
// answer, on a page, in an export or in an event. The providers got them.
func TestTenantChannels_SecretsHidden(t *testing.T) {
	t.Parallel()
	g, hook := newGossip(t), newInbox(t)
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "[{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 3, window: 24h}]", "[]", 1) +
		"webhooks: {allow_private_addresses: true}\ntenant_channels: {allow_private_addresses: true}\n", env: []string{"SENDQUOTA_LOG_LEVEL=debug", "SSL_CERT_FILE=" + g.roots}})
	b.StartAPI()
	worker := b.startWatchedWorker()
	_, err := b.client().Webhooks.Create(t.Context(), client.NewWebhook{URL: hook.URL})
	testenv.Check(t, err)
	seen := map[string]string{} // by the place
	rest := func(method, path, body string) string {
		text := b.textOf(httpClient, method, path, "application/json", body)
		seen["answers of the API"] += text
		return text
	}
	var words, names []string
	console := b.session("admin")
	for _, way := range []string{"rest", "tool", "form"} {
		c := g.settingsOf(way)
		words = append(words, c.words...)
		for of, settings := range c.settings {
			name := way + "-" + of
			names = append(names, name)
			body, err := json.Marshal(settings)
			testenv.Check(t, err)
			switch way {
			case "rest":
				rest("PUT", "/v1/channels/"+name, string(body))
			case "tool":
				file := filepath.Join(t.TempDir(), "channel.json")
				write(t, file, string(body))
				o := b.Exec("sendquota", "channels", "set", "--tenant", "acme", name, file)
				seen["the tool"] += o.Out + o.Err
			case "form":
				form := url.Values{"name": {name}, "allow_private_addresses": {"on"}}
				for member, value := range settings {
					form.Set(member, fmt.Sprint(value))
				}
				form.Set("backoff.first", "100ms")
				form.Set("backoff.max", "100ms")
				seen["pages"] += b.textOf(console, "POST", "/console/settings/channels/new", "application/x-www-form-urlencoded", form.Encode())
			}
			if answer := rest("GET", "/v1/channels/"+name, ""); !strings.Contains(answer, `"owner":"tenant"`) {
				t.Fatalf("%s is not made: %s\n%s", name, answer, seen["the tool"])
			}
		}
	}
	const misplaced = "CANARYMISPLACED0123456789"
	words = append(words, misplaced[:12])
	for i, body := range faulty(misplaced) {
		if answer := rest("PUT", "/v1/channels/bad", body); !strings.Contains(answer, "urn:sendquota:problem") {
			t.Errorf("%s is accepted: %s", body, answer)
		}
		file := filepath.Join(t.TempDir(), "bad.json")
		write(t, file, body)
		o := b.Exec("sendquota", "channels", "set", "--tenant", "acme", "bad", file)
		if seen["the tool"] += o.Out + o.Err; o.Status == 0 {
			t.Errorf("the tool accepts fault %d", i)
		}
	}
	for _, of := range []string{"webhook", "sms", "fcm", "apns", "email"} {
		form := url.Values{"name": {"bad"}, "type": {of}}
		for _, member := range []string{"url", "secret", "account_sid", "auth_token", "credentials", "key", "username"} {
			form.Set(member, misplaced+" !")
		}
		seen["pages"] += b.textOf(console, "POST", "/console/settings/channels/new", "application/x-www-form-urlencoded", form.Encode())
		for _, text := range []string{"works", "fails"} {
			message := fmt.Sprintf(`{"to": %q, "message": {"title": %q, "body": %[2]q}}`, addresses[of], text)
			if answer := rest("POST", "/v1/channels/form-"+of+"/test", message); !strings.Contains(answer, map[string]string{"works": `"delivered"`, "fails": `"refused"`}[text]) {
				t.Errorf("a test of %s that %s: %s", of, text, answer)
			}
		}
	}
	for _, name := range names {
		of := name[strings.Index(name, "-")+1:]
		for _, text := range []string{"works", "fails"} {
			to := ""
			if addresses[of] != "" {
				to = fmt.Sprintf(`"to": %q, `, addresses[of])
			}
			rest("POST", "/v1/pushes", fmt.Sprintf(`{"recipient": %q, "channel": %q, %s"message": {"title": %q, "body": %[4]q}}`, uuid.NewString(), name, to, text))
		}
	}
	b.until("all pushes have ended", func() bool {
		return strings.Count(rest("GET", "/v1/sends?page_size=100", ""), `"attempt":1`) == 2*len(names)
	})
	b.until("events tell of them", func() bool { return len(hook.of("push.")) >= 2*len(names) })
	outcomes := rest("GET", "/v1/sends?page_size=100", "")
	if delivered := strings.Count(outcomes, `"outcome":"delivered"`); delivered != len(names) {
		t.Errorf("%d of %d are delivered: %s", delivered, len(names), outcomes)
	}
	for _, path := range []string{"/v1/channels", "/v1/audit-log?page_size=100", "/v1/failures", "/v1/pushes?page_size=100", "/v1/status", "/v1/sends/export", "/v1/audit-log/export", "/openapi.json"} {
		rest("GET", path, "")
	}
	for _, path := range append([]string{"/console/settings/channels", "/console/proof/log", "/console/failures"}, "/console/settings/channels/own/"+names[0], "/console/settings/channels/own/form-sms") {
		seen["pages"] += b.textOf(console, "GET", path, "", "")
	}
	seen["metrics"] = rest("GET", "/metrics", "") + metricsOf(t, worker)
	export := filepath.Join(t.TempDir(), "export")
	seen["the tool"] += b.Tool("tenants", "export", "acme", export) + b.Tool("channels", "list", "--tenant", "acme", "--json")
	seen["an export"] = folderText(t, export)
	for _, d := range hook.of("") {
		seen["events"] += string(d.body)
	}
	seen["the database"] = dumped(t, b.Database)
	seen["Redis"] = b.allOfRedis()
	b.stop(worker.Process)
	logs, err := filepath.Glob(filepath.Join(b.Dir, "*.log"))
	testenv.Check(t, err)
	for _, file := range logs {
		text, err := os.ReadFile(file)
		testenv.Check(t, err)
		seen["logs"] += string(text)
	}
	for place, proof := range map[string]string{ // that the place has what it should have
		"the database": "rest-webhook", "Redis": "queue", "logs": "push attempted", "metrics": "sendquota_", "answers of the API": `"set":true`, "pages": "Set on", "an export": "rest-webhook", "events": "push.failed", "the tool": "tool-sms",
	} {
		if !strings.Contains(seen[place], proof) {
			t.Errorf("%s has no %q: %.2000s", place, proof, seen[place])
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, got := range []string{"CANARYrestpath", "CANARYtoolquery", "CANARYformsid", "CANARYtooltoken", "CANARYTOKEN", "CANARYformpassword"} {
		if !strings.Contains(g.heard.String(), got) {
			t.Errorf("the providers did not get %s", got)
		}
	}
	for place, text := range seen {
		for _, word := range words {
			for _, form := range []string{word, hex.EncodeToString([]byte(word)), base64.StdEncoding.EncodeToString([]byte(word))} {
				if at := strings.Index(text, strings.TrimRight(form, "=")); at >= 0 {
					t.Errorf("%s in %s: …%s…", word, place, text[max(0, at-200):min(len(text), at+100)])
				}
			}
		}
	}
}

// textOf sends a request with the tenant's key, and returns the text of the answer.
func (b *bundle) textOf(c *http.Client, method, path, media, body string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.api+path, strings.NewReader(body))
	testenv.Check(b.t, err)
	req.Header.Set("Content-Type", media)
	if c == httpClient {
		req.Header.Set("Authorization", "Bearer "+b.Key)
	}
	res, err := c.Do(req)
	testenv.Check(b.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	testenv.Check(b.t, err)
	return string(text)
}

// metricsOf returns the metrics of a worker.
func metricsOf(t *testing.T, w watched) string {
	t.Helper()
	res, err := httpClient.Get(w.url + "/metrics")
	testenv.Check(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	testenv.Check(t, err)
	return string(text)
}

// folderText returns all files of a folder.
func folderText(t *testing.T, folder string) (all string) {
	t.Helper()
	testenv.Check(t, filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all += string(text)
		return err
	}))
	return all
}

// dumped returns a dump of a database by pg_dump; without it, all rows of all tables as text.
func dumped(t *testing.T, database string) string {
	t.Helper()
	if program, err := exec.LookPath("pg_dump"); err == nil {
		if text, err := exec.CommandContext(t.Context(), program, "--inserts", "-d", database).Output(); err == nil {
			return string(text)
		}
	}
	return testenv.Query[string](t, database, `
		SELECT string_agg(query_to_xml(format('SELECT * FROM %I.%I', schemaname, tablename), true, false, '')::text, '') FROM pg_tables
		WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`)
}

// allOfRedis returns all keys of Redis with their values.
func (b *bundle) allOfRedis() string {
	b.t.Helper()
	rdb := testenv.RedisClient(b.t, b.Redis)
	ctx := b.t.Context()
	keys, err := rdb.Keys(ctx, "*").Result()
	testenv.Check(b.t, err)
	slices.Sort(keys)
	all := ""
	for _, key := range keys {
		kind, err := rdb.Type(ctx, key).Result()
		testenv.Check(b.t, err)
		var value any
		switch kind {
		case "string":
			value = rdb.Get(ctx, key).Val()
		case "hash":
			value = rdb.HGetAll(ctx, key).Val()
		case "list":
			value = rdb.LRange(ctx, key, 0, -1).Val()
		case "set":
			value = rdb.SMembers(ctx, key).Val()
		case "zset":
			value = rdb.ZRangeWithScores(ctx, key, 0, -1).Val()
		case "stream":
			value = rdb.XRange(ctx, key, "-", "+").Val()
		}
		all += fmt.Sprintln(key, value)
	}
	return all
}
