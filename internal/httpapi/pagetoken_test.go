package httpapi

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func TestPageToken(t *testing.T) {
	tenant := uuid.New()
	p := push.Position{SendAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), ID: uuid.New()}
	f := push.Filter{Recipient: "a", Status: push.Sent, From: p.SendAt}
	token := pageToken(p, tenant, f)
	if got, ok := readPageToken(token, tenant, f); !ok || got != p {
		t.Errorf("read %v, %v", got, ok)
	}
	if got, ok := readPageToken("", tenant, f); !ok || got != (push.Position{}) {
		t.Errorf("no token is %v, %v", got, ok)
	}
	if _, ok := readPageToken(token, uuid.New(), f); ok {
		t.Error("another tenant may use it")
	}
	for _, other := range []push.Filter{
		{}, {Recipient: "b", Status: push.Sent, From: p.SendAt}, {Recipient: "a", From: p.SendAt}, {Recipient: "a", Status: push.Sent, Until: p.SendAt},
		{Recipient: "a", Status: push.Sent, From: p.SendAt, Channel: "push"}, {Recipient: "a", Status: push.Sent, From: p.SendAt, Category: "c"},
		{Category: "a", Status: push.Sent, From: p.SendAt},
	} {
		if _, ok := readPageToken(token, tenant, other); ok {
			t.Errorf("it serves the filter %+v", other)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] ^= 1
		if _, ok := readPageToken(base64.RawURLEncoding.EncodeToString(raw), tenant, f); ok {
			t.Errorf("byte %d can be changed", i)
		}
		raw[i] ^= 1
	}
}

// FuzzPageToken: nothing but a real token is taken.
func FuzzPageToken(f *testing.F) {
	filter := push.Filter{Recipient: "a"}
	real := pageToken(push.Position{SendAt: time.Unix(1, 0), ID: uuid.Max}, uuid.Max, filter)
	f.Add(real)
	f.Add("AAAA")
	f.Add(real + "=")
	f.Fuzz(func(t *testing.T, token string) {
		if p, ok := readPageToken(token, uuid.Max, filter); ok && token != "" && token != pageToken(p, uuid.Max, filter) {
			t.Errorf("%q is taken for %v", token, p)
		}
	})
}
