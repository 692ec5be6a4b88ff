package frame

import (
	"crypto/rand"
	"net/http"
	"testing"
)

// TestFlash_Pack: however many calls a form made, browsers accept the cookie.
func TestFlash_Pack(t *testing.T) {
	t.Parallel()
	var many flash
	for range 300 {
		many.Calls = append(many.Calls, Call{Method: http.MethodPost, Path: "/v1/pushes/" + rand.Text(), Body: `{"send_at":"` + rand.Text() + `"}`})
	}
	if packed := many.pack(); len(packed) > longestFlash || len(packed) < 1000 {
		t.Errorf("%d characters", len(packed))
	}
	if half := (flash{Notice: "Done"}).pack()[:8]; half == "" {
		t.Error("nothing is packed")
	}
}

// TestSecret finds bodies with a secret, by the names of their members.
func TestSecret(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"":                                    false,
		"@file":                               false,
		`{"send_at":"password"}`:              false,
		`{"message":{"title":"secret sale"}}`: false,
		`{"password":"x"}`:                    true,
		`{"all":[{"client_Secret":"x"}]}`:     true,
		`{"name":`:                            true,
	} {
		if got := secret(body); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
