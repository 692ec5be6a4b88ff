//go:build !nodev

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/config"
)

// inbox is a push provider for demonstrations: it accepts the posts of the webhook channel, and prints them.
type inbox struct {
	listener net.Listener
	out      io.Writer
}

func newInbox(out io.Writer) (*inbox, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the demo provider: %w", err)
	}
	return &inbox{listener: listener, out: out}, nil
}

// channel returns the settings of a channel that sends to the inbox, with the other settings of c.
func (i *inbox) channel(c config.Channel) config.Channel {
	c.Name, c.Type, c.AllowPrivateAddresses = "push", config.Webhook, true
	c.Webhook.URL = config.Secret("http://" + i.listener.Addr().String() + "/")
	return c
}

// run serves until ctx ends.
func (i *inbox) run(ctx context.Context) error {
	server := &http.Server{Handler: i, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(i.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("demo provider: %w", err)
	}
	return nil
}

// ServeHTTP prints a push and accepts it.
func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p struct {
		ID, Recipient string
		SendAt        time.Time `json:"send_at"`
		Attempt       int
		Message       json.RawMessage
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&p); err != nil {
		http.Error(w, "not a push", http.StatusBadRequest)
		return
	}
	now := time.Now().UTC()
	fmt.Fprintf(i.out, "%s  delivered to %s, %d ms after its time: %s  (push %s, attempt %d)\n",
		now.Format("15:04:05.000"), p.Recipient, now.Sub(p.SendAt).Milliseconds(), p.Message, p.ID, p.Attempt)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id": "demo-%s"}`, p.ID)
}
