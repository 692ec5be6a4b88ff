package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// deviceToken is the form of the tokens that APNs gives an app. Their length may grow.
var deviceToken = regexp.MustCompile(`^([0-9a-fA-F]{2}){32,}$`)

// APNsConfig configures an [APNs].
type APNsConfig struct {
	Connection

	Key     string // the text of the .p8 file; required, as are the next three
	KeyID   string // of the key, ten characters
	TeamID  string // of the developer account, ten characters
	Topic   string // the app's bundle id
	BaseURL string // default: Apple's, for production
}

// APNs is a channel to Apple's devices through Apple's Push Notification service, over HTTP/2.
//
// https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns
type APNs struct {
	cfg    APNsConfig
	url    *url.URL
	tokens *appleTokens
	client *outbound.Client
	codes  map[string]meaning
}

// NewAPNs returns a channel. Its errors quote nothing of the key.
func NewAPNs(cfg APNsConfig) (*APNs, error) {
	cfg.Connection = cfg.settled()
	u, err := parseURL(cmp.Or(cfg.BaseURL, "https://api.push.apple.com"))
	if err != nil || u.Scheme != "https" {
		return nil, cfg.fault("base_url", "is not an absolute https URL")
	}
	for _, one := range []struct{ setting, value string }{{"key_id", cfg.KeyID}, {"team_id", cfg.TeamID}, {"topic", cfg.Topic}} {
		if one.value == "" {
			return nil, cfg.fault(one.setting, "is missing")
		}
	}
	tokens, err := newAppleTokens(cfg.Key, cfg.KeyID, cfg.TeamID, cfg.Now)
	if err != nil {
		return nil, cfg.fault("key", err.Error())
	}
	return &APNs{cfg: cfg, url: u.JoinPath("3", "device"), tokens: tokens, client: cfg.client(true), codes: apnsReasons()}, nil
}

// Check requires a device token and a message that a device can show: a title or a body. data, for the app, and aps,
// for details of the display, must be objects.
func (a *APNs) Check(to string, raw json.RawMessage) invalid.FieldErrors {
	var faults invalid.FieldErrors
	if !deviceToken.MatchString(to) {
		faults = append(faults, wrongAddress(to, "a device token of APNs: at least 64 hexadecimal digits"))
	}
	m := open(raw)
	if m.text("title") == "" && m.text("body") == "" {
		faults = append(faults, invalid.FieldError{Field: "message", Message: "must have a title or a body"})
	}
	data, ok := m.object("data")
	if !ok {
		faults = append(faults, invalid.FieldError{Field: "message.data", Message: "must be an object"})
	}
	if _, taken := data["aps"]; taken {
		faults = append(faults, invalid.FieldError{Field: "message.data.aps", Message: "must not be set; use message.aps"})
	}
	if _, ok := m.object("aps"); !ok {
		faults = append(faults, invalid.FieldError{Field: "message.aps", Message: "must be an object"})
	}
	if size := len(payload(m)); size > maxPayload {
		faults = append(faults, tooLong("message", maxPayload, size, "bytes as a payload of APNs"))
	}
	return faults
}

// payload returns the device's payload: the data, and aps among it.
func payload(m message) []byte {
	whole, aps := map[string]any{}, map[string]any{}
	data, _ := m.object("data")
	for key, value := range data {
		whole[key] = value
	}
	details, _ := m.object("aps")
	for key, value := range details {
		aps[key] = value
	}
	aps["alert"], whole["aps"] = m.alert(), aps
	body, _ := encodeJSON(whole) // cannot fail: everything came from JSON
	return body
}

// Send asks APNs once to take a notification.
func (a *APNs) Send(ctx context.Context, p push.Push, _ int) Result {
	if r, bad := unfit(a, p); bad {
		return r
	}
	token, err := a.tokens.get()
	if err != nil {
		return down(err.Error())
	}
	req := outbound.Post(a.url.JoinPath(p.To), "application/json", payload(open(p.Message)))
	for name, value := range map[string]string{
		"Authorization": "bearer " + token, "Apns-Topic": a.cfg.Topic, "Apns-Id": p.ID.String(),
		"Apns-Push-Type": "alert", "Apns-Priority": "10",
	} {
		req.Header.Set(name, value)
	}
	if !p.ExpiresAt.IsZero() {
		req.Header.Set("Apns-Expiration", strconv.FormatInt(p.ExpiresAt.Unix(), 10))
	}
	r, answer := ask(ctx, a.client, req, a.cfg.Now)
	if answer.Status == http.StatusForbidden {
		a.tokens.forget(token) // the next attempt makes a new one
	}
	id, reason := apnsAnswer(answer)
	return r.refined(id, reason, a.codes)
}
