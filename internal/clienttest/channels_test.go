package clienttest

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestClient_Channels reads the state of a channel that the worker uses.
func TestClient_Channels(t *testing.T) {
	t.Parallel()
	api := newClient()
	testenv.Until(t, 10*time.Millisecond, "the worker reports its channel", func() bool {
		r, err := api.Channels.List(t.Context())
		if err != nil || len(r.Channels) == 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		c := r.Channels[0]
		return c.State == client.ChannelStateWorking && !c.AsOf.IsZero() && c.Default && r.Complete
	})
}

// TestClient_OwnChannel makes a channel with the form of its type, reads it as its type, tests it and deletes it.
func TestClient_OwnChannel(t *testing.T) {
	t.Parallel()
	api := newClient()
	name := "own-" + strings.ToLower(rand.Text())
	made, err := api.Channels.Put(t.Context(), name, client.EmailChannelForm{Type: client.EmailChannelFormTypeEmail, Host: "smtp.example.com", From: "a@example.com", Username: "shop", Password: "CANARY", Timeout: "1s"})
	testenv.Check(t, err)
	var is client.EmailChannel
	testenv.Check(t, made.As(&is))
	if is.Owner != client.EmailChannelOwnerTenant || !is.Password.Set || is.Password.SetAt.IsZero() || is.Port != 587 || is.Timeout != "1s" || is.CreatedAt.IsZero() || is.Problem != "" {
		t.Errorf("the channel is %+v", is)
	}
	var bad *client.Invalid
	if _, err := api.Channels.Put(t.Context(), name, made); !errors.As(err, &bad) || !strings.Contains(err.Error(), "is masked") || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("an answer that is sent back: %v", err)
	}
	if _, err := api.Channels.Put(t.Context(), name, client.ChannelSettings{"type": "email", "host": "smtp.example.com", "from": "a@example.com", "username": nil, "password": nil, "disabled": true}); err != nil {
		t.Error(err)
	}
	now, err := api.Channels.Get(t.Context(), name)
	testenv.Check(t, err)
	is = client.EmailChannel{}
	testenv.Check(t, now.As(&is))
	if is.Password.Set || !is.Disabled || is.Problem == "" {
		t.Errorf("a channel without its password is %+v", is)
	}
	if deleted, err := api.Channels.Delete(t.Context(), name, client.ChannelOptions{}); err != nil || deleted.Canceled != 0 {
		t.Errorf("%+v %v", deleted, err)
	}
	var none *client.Problem
	if _, err := api.Channels.Get(t.Context(), name); !errors.As(err, &none) || none.Name() != "not-found" {
		t.Errorf("a deleted channel: %v", err)
	}
}
