package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Simulate says what the start of a draft would do. It books nothing.
func (c *Client) Simulate(ctx context.Context, id string) (Simulation, error) {
	return ask[Simulation](ctx, c, call{method: http.MethodPost, path: path("campaigns", id, "simulate"), repeat: true})
}

// SimulateChanged says what the start of a draft would do after a change. It neither changes nor books anything.
func (c *Client) SimulateChanged(ctx context.Context, id string, to CampaignChange) (Simulation, error) {
	return ask[Simulation](ctx, c, call{method: http.MethodPost, path: path("campaigns", id, "simulate"), body: to, repeat: true})
}

// SimulatedRecipient is what the start of a campaign would do with one recipient.
type SimulatedRecipient struct {
	Recipient string    `json:"recipient"`
	Outcome   string    `json:"outcome"` // accepted, deferred, refused, opted_out or invalid
	SendAt    time.Time `json:"send_at"` // zero: it would not be sent
	Reason    string    `json:"reason"`
}

// SimulateEach calls each with what the start of a draft would do with each recipient, and returns the totals. An error of
// each ends it, and is returned.
func (c *Client) SimulateEach(ctx context.Context, id string, each func(SimulatedRecipient) error) (Simulation, error) {
	answer, err := c.do(ctx, call{
		method: http.MethodPost, path: path("campaigns", id, "simulate"), header: http.Header{"Accept": {string(NDJSON)}}, repeat: true,
	})
	if err != nil {
		return Simulation{}, err
	}
	defer answer.Body.Close()
	lines := json.NewDecoder(answer.Body)
	for {
		var line struct {
			SimulatedRecipient
			Recipient *string `json:"recipient"` // nil: these are the totals
		}
		var text json.RawMessage
		if err := lines.Decode(&text); err != nil {
			return Simulation{}, fmt.Errorf("the simulation broke off: %w", cutShort(err))
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return Simulation{}, fmt.Errorf("a line of the simulation: %w", err)
		}
		if line.Recipient == nil {
			var all Simulation
			return all, json.Unmarshal(text, &all)
		}
		line.SimulatedRecipient.Recipient = *line.Recipient
		if err := each(line.SimulatedRecipient); err != nil {
			return Simulation{}, err
		}
	}
}

// cutShort is the error of a stream that ends before its end.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// CapacityOptions say when is looked at, and how closely. What is zero is the API's default.
type CapacityOptions struct {
	From, Until time.Time // at most 62 days
	TimeZone    string    // whose days are counted
	Sample      int       // recipients, at most
}

// Capacity says how many of a sample of a draft's recipients have a place at each hour.
func (c *Client) Capacity(ctx context.Context, id string, o CapacityOptions) (Capacity, error) {
	query := params{"from": o.From, "until": o.Until, "time_zone": o.TimeZone, "sample": o.Sample}
	return ask[Capacity](ctx, c, call{method: http.MethodGet, path: path("campaigns", id, "capacity"), query: query.values(), repeat: true})
}
