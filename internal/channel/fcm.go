package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

const (
	maxPayload = 4096                // bytes, for FCM and APNs
	maxFCMLife = 28 * 24 * time.Hour // the maximum that Google stores a message
)

// registrationToken is the form of the tokens that FCM gives an app.
var registrationToken = regexp.MustCompile(`^[A-Za-z0-9_:-]{32,}$`)

// FCMConfig configures an [FCM].
type FCMConfig struct {
	Connection

	Credentials string // the JSON of a service account; required
	ProjectID   string // default: the service account's
	BaseURL     string // default: Google's
	TokenURL    string // default: the credentials' token_uri
}

// FCM is a channel to Android, Apple and web apps through Firebase Cloud Messaging, HTTP v1.
//
// https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send
type FCM struct {
	cfg    FCMConfig
	url    *url.URL
	tokens *googleTokens
	client *outbound.Client
	codes  map[string]meaning
}

// NewFCM returns a channel. Its errors quote nothing of the credentials.
func NewFCM(cfg FCMConfig) (*FCM, error) {
	cfg.Connection = cfg.settled()
	u, err := parseURL(cmp.Or(cfg.BaseURL, "https://fcm.googleapis.com"))
	if err != nil {
		return nil, cfg.fault("base_url", err.Error())
	}
	f := &FCM{cfg: cfg, client: cfg.client(false), codes: fcmCodes()}
	if f.tokens, err = newGoogleTokens(cfg.Credentials, cfg.TokenURL, f.client, cfg.Now); err != nil {
		return nil, cfg.fault("credentials", err.Error())
	}
	project := cmp.Or(cfg.ProjectID, f.tokens.account.ProjectID)
	if project == "" {
		return nil, cfg.fault("project_id", "is neither set nor part of the credentials")
	}
	f.url = u.JoinPath("v1", "projects", project, "messages:send")
	return f, nil
}

// Check requires a registration token and a message that FCM can carry: a title, a body, or data, which must be an
// object.
func (f *FCM) Check(to string, raw json.RawMessage) invalid.FieldErrors {
	var faults invalid.FieldErrors
	if !registrationToken.MatchString(to) {
		faults = append(faults, wrongAddress(to, "a registration token of FCM: at least 32 of a-z, A-Z, 0-9, _, : and -"))
	}
	m := open(raw)
	data, ok := m.object("data")
	switch {
	case !ok:
		faults = append(faults, invalid.FieldError{Field: "message.data", Message: "must be an object"})
	case m.text("title") == "" && m.text("body") == "" && len(data) == 0:
		faults = append(faults, invalid.FieldError{Field: "message", Message: "must have a title, a body or data"})
	}
	size, reserved := len(m.text("title"))+len(m.text("body")), false
	for key, value := range stringValues(data) {
		size += len(key) + len(value)
		reserved = reserved || isReserved(key)
	}
	if reserved {
		faults = append(faults, invalid.FieldError{Field: "message.data", Message: "must not have the keys from, gcm or message_type, nor any that begins with google or gcm."})
	}
	if size > maxPayload {
		faults = append(faults, tooLong("message", maxPayload, size, "bytes of title, body and data"))
	}
	return faults
}

// isReserved reports whether FCM reserves a key of the data.
func isReserved(key string) bool {
	return slices.Contains([]string{"from", "gcm", "message_type"}, key) || strings.HasPrefix(key, "google") || strings.HasPrefix(key, "gcm.")
}

// stringValues turns all values into strings, as FCM requires: other values become their JSON.
func stringValues(data message) map[string]string {
	if len(data) == 0 {
		return nil
	}
	values := make(map[string]string, len(data))
	for key, raw := range data {
		if raw[0] == '"' {
			values[key] = data.text(key)
			continue
		}
		values[key] = string(raw)
	}
	return values
}

// Send asks FCM once to take a message. It may have to get an access token first; without one, nothing is sent.
func (f *FCM) Send(ctx context.Context, p push.Push, _ int) Result {
	if r, bad := unfit(f, p); bad {
		return r
	}
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	token, err := f.tokens.get(ctx)
	if err != nil {
		return down(err.Error())
	}
	req := outbound.Post(f.url, "application/json", f.body(p))
	req.Header.Set("Authorization", "Bearer "+token)
	r, answer := ask(ctx, f.client, req, f.cfg.Now)
	name, code := fcmAnswer(answer)
	if answer.Status == http.StatusUnauthorized && code != "THIRD_PARTY_AUTH_ERROR" {
		f.tokens.forget(token) // the next attempt gets another
	}
	return r.refined(name, code, f.codes)
}

// fcmMessage is the part of FCM's Message resource that is used.
type fcmMessage struct {
	Token        string                       `json:"token"`
	Notification map[string]string            `json:"notification,omitempty"` // title and body
	Data         map[string]string            `json:"data,omitempty"`
	Android      map[string]string            `json:"android,omitempty"` // ttl
	APNs         map[string]map[string]string `json:"apns,omitempty"`    // headers
	Webpush      map[string]map[string]string `json:"webpush,omitempty"` // headers
}

// body returns the request's body. None of the three systems behind FCM may show an expired message later.
func (f *FCM) body(p push.Push) []byte {
	in := open(p.Message)
	data, _ := in.object("data")
	m := fcmMessage{Token: p.To, Notification: in.alert(), Data: stringValues(data)}
	if !p.ExpiresAt.IsZero() {
		left := int(min(max(0, p.ExpiresAt.Sub(f.cfg.Now())), maxFCMLife) / time.Second)
		m.Android = map[string]string{"ttl": fmt.Sprintf("%ds", left)}
		m.APNs = map[string]map[string]string{"headers": {"apns-expiration": strconv.FormatInt(p.ExpiresAt.Unix(), 10)}}
		m.Webpush = map[string]map[string]string{"headers": {"TTL": strconv.Itoa(left)}}
	}
	body, _ := encodeJSON(map[string]fcmMessage{"message": m}) // strings always marshal
	return body
}
