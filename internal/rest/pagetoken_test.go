package rest

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// tokenFilter is the filter of a list.
type tokenFilter struct {
	push.Filter
	PageParams
}

func listOf(f push.Filter) string { return listName("/v1/pushes", tokenFilter{Filter: f}) }

// readPush reads the token of a list of pushes.
func readPush(token string, tenant uuid.UUID, f push.Filter) (push.Position, bool) {
	var bad FieldErrors
	var at push.Position
	readPageToken(token, tenant, listOf(f), &at, &bad)
	return at, bad.Err() == nil
}

func TestPageToken(t *testing.T) {
	tenant := uuid.New()
	at := push.Position{SendAt: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), ID: uuid.New()}
	f := push.Filter{Recipient: "a", Status: push.Sent, From: at.SendAt}
	token := SealToken(at, tenant, listOf(f))
	if got, ok := readPush(token, tenant, f); !ok || got != at {
		t.Errorf("read %v, %v", got, ok)
	}
	if got, ok := readPush("", tenant, f); !ok || got != (push.Position{}) {
		t.Errorf("no token is %v, %v", got, ok)
	}
	if _, ok := readPush(token, uuid.New(), f); ok {
		t.Error("another tenant may use it")
	}
	for _, other := range []push.Filter{
		{}, {Recipient: "b", Status: push.Sent, From: at.SendAt}, {Recipient: "a", From: at.SendAt}, {Recipient: "a", Status: push.Sent, Until: at.SendAt},
		{Recipient: "a", Status: push.Sent, From: at.SendAt, Channel: "push"}, {Recipient: "a", Status: push.Sent, From: at.SendAt, Category: "c"},
		{Category: "a", Status: push.Sent, From: at.SendAt},
	} {
		if _, ok := readPush(token, tenant, other); ok {
			t.Errorf("it serves the filter %+v", other)
		}
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] ^= 1
		if _, ok := readPush(base64.RawURLEncoding.EncodeToString(raw), tenant, f); ok {
			t.Errorf("byte %d can be changed", i)
		}
		raw[i] ^= 1
	}
}

// FuzzPageToken: nothing but a real token is taken.
func FuzzPageToken(f *testing.F) {
	filter := push.Filter{Recipient: "a"}
	real := SealToken(push.Position{SendAt: time.Unix(1, 0).UTC(), ID: uuid.Max}, uuid.Max, listOf(filter))
	f.Add(real)
	f.Add("AAAA")
	f.Add(real + "=")
	f.Fuzz(func(t *testing.T, token string) {
		if p, ok := readPush(token, uuid.Max, filter); ok && token != "" && token != SealToken(p, uuid.Max, listOf(filter)) {
			t.Errorf("%q is taken for %v", token, p)
		}
	})
}
