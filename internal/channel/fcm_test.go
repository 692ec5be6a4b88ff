package channel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

const testRegistration = markTo + ":APA91b_0123456789-abcdefghijklmnopqrstuvwxyz"

func newTestFCM(t testing.TB, g *google, cfg FCMConfig) *FCM {
	t.Helper()
	cfg.Credentials = g.credentials()
	f, err := NewFCM(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	return f
}

func fcmPush() push.Push {
	p := testPush()
	p.To = testRegistration
	return p
}

func TestFCM_Request(t *testing.T) {
	provider := newProvider(t, answers(200, `{"name":"projects/shop-1/messages/0:1500415314455276%31bd1c9631bd1c96"}`))
	f := newTestFCM(t, newGoogle(t), FCMConfig{Connection: testConnection(0), BaseURL: provider.url()})
	p := fcmPush()
	p.Message = json.RawMessage(`{"title":"Sale","body":"50% <off>","data":{"text":"a\"b","number": 1.50,"object":{"a":[1]},"null":null}}`)
	p.ExpiresAt = testNow().Add(90*time.Second + 500*time.Millisecond)
	got := f.Send(t.Context(), p, 1)
	want := Result{Outcome: push.Delivered, ProviderMessageID: "projects/shop-1/messages/0:1500415314455276%31bd1c9631bd1c96"}
	if diff := cmp.Diff(want, got, notWhen); diff != "" || got.Handed.IsZero() {
		t.Errorf("handed %s, result (-want +got):\n%s", got.Handed, diff)
	}
	requests, _ := provider.seen()
	r := requests[0]
	if got := r.Method + " " + r.RequestURI; got != "POST /v1/projects/shop-1/messages:send" {
		t.Errorf("request line %q", got)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer "+markSecret+"-token-1" {
		t.Errorf("authorization %q", got)
	}
	body := `{"message":{"token":"` + testRegistration + `","notification":{"body":"50% <off>","title":"Sale"},` +
		`"data":{"null":"null","number":"1.50","object":"{\"a\":[1]}","text":"a\"b"},"android":{"ttl":"90s"},` +
		`"apns":{"headers":{"apns-expiration":"1796112090"}},"webpush":{"headers":{"TTL":"90"}}}}`
	if diff := cmp.Diff(body, string(r.body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// Google permanently refuses a life of more than 28 days. APNs' header is the time of the end.
func TestFCM_TimeToLive(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		left time.Duration
		want string
	}{
		"expired":      {-time.Second, `"android":{"ttl":"0s"},"apns":{"headers":{"apns-expiration":"1796111999"}},"webpush":{"headers":{"TTL":"0"}}}}`},
		"just":         {28 * day, `"android":{"ttl":"2419200s"},"apns":{"headers":{"apns-expiration":"1798531200"}},"webpush":{"headers":{"TTL":"2419200"}}}}`},
		"a bit longer": {28*day + time.Second, `"android":{"ttl":"2419200s"},"apns":{"headers":{"apns-expiration":"1798531201"}},"webpush":{"headers":{"TTL":"2419200"}}}}`},
		"60 days":      {60 * day, `"android":{"ttl":"2419200s"},"apns":{"headers":{"apns-expiration":"1801296000"}},"webpush":{"headers":{"TTL":"2419200"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			provider := newProvider(t, answers(200, "{}"))
			p := fcmPush()
			p.ExpiresAt = testNow().Add(tt.left)
			newTestFCM(t, newGoogle(t), FCMConfig{Connection: testConnection(0), BaseURL: provider.url()}).Send(t.Context(), p, 1)
			requests, _ := provider.seen()
			if got := string(requests[0].body); !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %s, want %s at its end", got, tt.want)
			}
		})
	}
}

func TestFCM_DataAlone(t *testing.T) {
	provider := newProvider(t, answers(200, "{}"))
	p := fcmPush()
	p.Message = json.RawMessage(`{"data":{"a":"b"}}`)
	newTestFCM(t, newGoogle(t), FCMConfig{Connection: testConnection(0), BaseURL: provider.url(), ProjectID: "other"}).Send(t.Context(), p, 1)
	requests, _ := provider.seen()
	if got, want := string(requests[0].body), `{"message":{"token":"`+testRegistration+`","data":{"a":"b"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if requests[0].RequestURI != "/v1/projects/other/messages:send" {
		t.Error(requests[0].RequestURI)
	}
}

// asker is the context of a caller that signals when it begins to wait.
type asker struct {
	context.Context
	waits chan<- bool
}

func (a asker) Done() <-chan struct{} {
	a.waits <- true
	return a.Context.Done()
}

// An access token serves until it expires, and is fetched once for all that wait for it.
func TestFCM_AccessTokenReuse(t *testing.T) {
	const askers = 16
	var (
		mu  sync.Mutex
		now = testNow()
	)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	g, waits := newGoogle(t), make(chan bool, askers)
	g.now = clock
	g.answer = func(w http.ResponseWriter, token string) {
		for range askers { // all wait for this answer
			select {
			case <-waits:
			case <-t.Context().Done():
				return
			}
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":600}`, token)
	}
	f := newTestFCM(t, g, FCMConfig{Connection: Connection{Name: "push", AllowPrivateAddresses: true, Now: clock}})
	for _, step := range []struct {
		in   time.Duration
		want int64
	}{{0, 1}, {8 * time.Minute, 1}, {time.Minute, 2}, {0, 2}} {
		mu.Lock()
		now = now.Add(step.in)
		mu.Unlock()
		var asking sync.WaitGroup
		for range askers {
			asking.Go(func() {
				token, err := f.tokens.get(asker{t.Context(), waits})
				if want := fmt.Sprintf("%s-token-%d", markSecret, step.want); token != want || err != nil {
					t.Errorf("got %q, %v, want %q", token, err, want)
				}
			})
		}
		asking.Wait()
		if n := g.exchanges.Load(); n != step.want {
			t.Errorf("after %s: %d exchanges, want %d", step.in, n, step.want)
		}
	}
}

// The next attempt fetches another access token, if the current one was refused.
func TestFCM_AccessTokenRefused(t *testing.T) {
	for code, want := range map[string]int64{"UNAUTHENTICATED": 2, "": 2, "THIRD_PARTY_AUTH_ERROR": 1} {
		t.Run(code, func(t *testing.T) {
			provider, g := newProvider(t, answers(401, fcmError("UNAUTHENTICATED", code))), newGoogle(t)
			f := newTestFCM(t, g, FCMConfig{Connection: testConnection(0), BaseURL: provider.url()})
			for range 2 {
				if got := f.Send(t.Context(), fcmPush(), 1); got.Outcome != push.Refused || got.Final {
					t.Errorf("got %+v", got)
				}
			}
			if n := g.exchanges.Load(); n != want {
				t.Errorf("%d exchanges, want %d", n, want)
			}
			if requests, _ := provider.seen(); len(requests) != 2 {
				t.Errorf("%d requests", len(requests))
			}
		})
	}
}

// Without an access token nothing is sent, however the exchange fails.
func TestFCM_NoAccessToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, token string) // nil: none until the test ends
		want   string
	}{
		"refused": {func(w http.ResponseWriter, _ string) {
			http.Error(w, `{"error":"invalid_grant","error_description":"`+markSecret+`"}`, 400)
		}, "no access token: invalid_grant: the service account or its key is gone, or the clock is wrong"},
		"down":     {func(w http.ResponseWriter, _ string) { http.Error(w, markSecret, http.StatusServiceUnavailable) }, "no access token: the provider answered 503 Service Unavailable"},
		"drops":    {func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, "no access token: no answer: the server closed the connection"},
		"hangs":    {nil, "no access token: "},
		"nonsense": {func(w http.ResponseWriter, token string) { fmt.Fprint(w, token) }, "no access token: the answer has none"},
		"empty":    {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"access_token":"","expires_in":3600}`) }, "no access token: the answer has none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, g := newProvider(t, answers(200, "{}")), newGoogle(t)
			timeout := ample
			if g.answer = tt.answer; g.answer == nil {
				timeout = brief
				g.answer = func(http.ResponseWriter, string) { <-t.Context().Done() }
			}
			f := newTestFCM(t, g, FCMConfig{Connection: testConnection(timeout), BaseURL: provider.url()})
			got := f.Send(t.Context(), fcmPush(), 1)
			if got.Outcome != push.Refused || got.Final || !strings.HasPrefix(got.Error, tt.want) {
				t.Errorf("got %+v, want a temporary refusal for %q", got, tt.want)
			}
			checkError(t, got.Error)
			if _, conns := provider.seen(); conns != 0 {
				t.Errorf("the provider got %d connections", conns)
			}
		})
	}
}

func fcmError(status, code string) string {
	details := ""
	if code != "" {
		details = `{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"` + code + `"}`
	}
	return `{"error":{"code":1,"message":"` + markMessage + ` ` + markTo + `","status":"` + status + `","details":[` + details + `]}}`
}

// quotaError is a QUOTA_EXCEEDED with one more detail.
func quotaError(detail string) string {
	return `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"errorCode":"QUOTA_EXCEEDED"},` + detail + `]}}`
}

// The code determines whether a refusal is permanent, not the status.
func TestFCM_Errors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   Result
	}{
		{"unregistered", 404, fcmError("NOT_FOUND", "UNREGISTERED"), Result{Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 404 Not Found, UNREGISTERED: the app was removed, or its token has expired"}},
		{"no such project", 404, fcmError("NOT_FOUND", ""), Result{Error: "the provider answered 404 Not Found, NOT_FOUND: there is no such project"}},
		{"not our 404", 404, "<html>", Result{Error: "the provider answered 404 Not Found"}},
		{"invalid", 400, fcmError("INVALID_ARGUMENT", "INVALID_ARGUMENT"), Result{Final: true, Error: "the provider answered 400 Bad Request, INVALID_ARGUMENT: the message or its token is not valid"}},
		{"invalid token, by its words", 400, `{"error":{"status":"INVALID_ARGUMENT","message":"The registration token is not a valid FCM registration token"}}`,
			Result{Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 400 Bad Request, INVALID_ARGUMENT for the token: not a registration token of FCM"}},
		{"invalid token, by its field", 400, `{"error":{"status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.token","description":"x"}]}]}}`,
			Result{Final: true, Unregistered: true, OneAddress: true, Error: "unregistered: the provider answered 400 Bad Request, INVALID_ARGUMENT for the token: not a registration token of FCM"}},
		{"invalid data", 400, `{"error":{"status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"message.data[0].value"}]}]}}`,
			Result{Final: true, Error: "the provider answered 400 Bad Request, INVALID_ARGUMENT: the message or its token is not valid"}},
		{"other project", 403, fcmError("PERMISSION_DENIED", "SENDER_ID_MISMATCH"), Result{Final: true, Error: "the provider answered 403 Forbidden, SENDER_ID_MISMATCH: the token belongs to an app of another project"}},
		{"not allowed", 403, fcmError("PERMISSION_DENIED", ""), Result{Error: "the provider answered 403 Forbidden, PERMISSION_DENIED: the service account may not send messages"}},
		{"a code of tomorrow", 400, fcmError("NEW", markSecret), Result{Error: "the provider answered 400 Bad Request"}},
		{"too many for the device", 429, fcmError("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
			Result{RetryAfter: time.Minute, OneAddress: true, Error: "the provider answered 429 Too Many Requests, QUOTA_EXCEEDED: too many messages for this device"}},
		{"too many for the device of a project", 429, quotaError(`{"violations":[{"subject":"device:1","description":"Device message rate of the project exceeded"}]}`),
			Result{RetryAfter: time.Minute, OneAddress: true, Error: "the provider answered 429 Too Many Requests, QUOTA_EXCEEDED: too many messages for this device"}},
		{"too many of the project, by the subject", 429, quotaError(`{"violations":[{"subject":"project:1","description":"x"}]}`),
			Result{RetryAfter: time.Minute, Error: "the provider answered 429 Too Many Requests, QUOTA_EXCEEDED for the project: too many messages"}},
		{"too many of the project, by the limit", 429, quotaError(`{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"RequestsPerSecondPerProject"}}`),
			Result{RetryAfter: time.Minute, Error: "the provider answered 429 Too Many Requests, QUOTA_EXCEEDED for the project: too many messages"}},
		{"too many of the project, by the words", 429, quotaError(`{"violations":[{"description":"Messages per minute per project"}]}`),
			Result{RetryAfter: time.Minute, Error: "the provider answered 429 Too Many Requests, QUOTA_EXCEEDED for the project: too many messages"}},
		{"too many, of Google's APIs in general", 429, fcmError("RESOURCE_EXHAUSTED", ""),
			Result{RetryAfter: time.Minute, Error: "the provider answered 429 Too Many Requests, RESOURCE_EXHAUSTED: too many messages"}},
		{"overloaded, and says until when", 503, fcmError("UNAVAILABLE", "UNAVAILABLE"), Result{RetryAfter: time.Minute, Error: "the provider answered 503 Service Unavailable, UNAVAILABLE: overloaded"}},
		{"broken", 500, fcmError("INTERNAL", "INTERNAL"), Result{Outcome: push.Unknown, Error: "the provider answered 500 Internal Server Error"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want.Outcome == "" {
				tt.want.Outcome = push.Refused
			}
			provider := newProvider(t, answers(tt.status, tt.body, "Retry-After: 60"))
			got := newTestFCM(t, newGoogle(t), FCMConfig{Connection: testConnection(0), BaseURL: provider.url()}).Send(t.Context(), fcmPush(), 1)
			if diff := cmp.Diff(tt.want, got, notWhen); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

// A key may stand in one line: then its line breaks are written \n.
func TestKeys_OneLine(t *testing.T) {
	good := newGoogle(t).credentials()
	f, err := NewFCM(FCMConfig{Connection: testConnection(0), Credentials: strings.ReplaceAll(good, `\n`, `\\n`)})
	if err != nil {
		t.Fatal(err)
	}
	f.client.Close()
	if _, err := newAppleTokens(strings.ReplaceAll(p8(t, appleKey()), "\n", `\n`), "KEY1234567", "TEAM123456", time.Now); err != nil {
		t.Error(err)
	}
}

func TestFCM_BadCredentials(t *testing.T) {
	good := newGoogle(t).credentials()
	for name, tt := range map[string]struct{ credentials, want string }{
		"not JSON":       {markSecret, "is not the JSON of a service account"},
		"another kind":   {`{"type":"authorized_user","client_email":"` + markSecret + `"}`, "is not the JSON of a service account"},
		"no key":         {`{"type":"service_account","client_email":"x","private_key":"` + markSecret + `"}`, "has no valid RSA key in private_key"},
		"broken address": {strings.Replace(good, `"token_uri":"http`, `"token_uri":"ftp`, 1), "has a token_uri that is not an absolute http or https URL"},
		"no project":     {strings.Replace(good, `"project_id":"shop-1"`, `"project_id":""`, 1), "project_id is neither set nor part of the credentials"},
	} {
		_, err := NewFCM(FCMConfig{Connection: testConnection(0), Credentials: tt.credentials})
		if err == nil || !strings.HasPrefix(err.Error(), "channel push: ") || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkError(t, err.Error())
	}
}
