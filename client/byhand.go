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

// Simulate returns the result that the start of a draft would have. It books nothing.
func (a CampaignsAPI) Simulate(ctx context.Context, id string) (Simulation, error) {
	return ask[Simulation](ctx, a.c, call{method: http.MethodPost, path: path("/v1/campaigns/{id}/simulate", id), repeat: true})
}

// SimulateChanged returns the result that the start of a draft would have after a change. It neither changes nor books anything.
func (a CampaignsAPI) SimulateChanged(ctx context.Context, id string, to CampaignChange) (Simulation, error) {
	return ask[Simulation](ctx, a.c, call{method: http.MethodPost, path: path("/v1/campaigns/{id}/simulate", id), body: to, repeat: true})
}

// SimulatedRecipient is the outcome that a recipient would have after the start of a campaign.
type SimulatedRecipient struct {
	Recipient string    `json:"recipient"`
	Outcome   string    `json:"outcome"` // accepted, deferred, refused, opted_out or invalid
	SendAt    time.Time `json:"send_at"` // zero: it would not be sent
	Reason    string    `json:"reason"`
}

// SimulateEach calls each with the outcome that every recipient of a draft would have, and returns the totals. An error of
// each ends it, and is returned.
func (a CampaignsAPI) SimulateEach(ctx context.Context, id string, each func(SimulatedRecipient) error) (Simulation, error) {
	answer, err := a.c.do(ctx, call{
		method: http.MethodPost, path: path("/v1/campaigns/{id}/simulate", id), header: http.Header{"Accept": {string(NDJSON)}}, repeat: true,
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

// Recipient returns the outcome of a recipient of a campaign; false: the campaign has no such recipient.
func (a CampaignsAPI) Recipient(ctx context.Context, id, recipient string) (r CampaignRecipient, has bool, err error) {
	var page CampaignRecipientsPage
	err = a.c.Get(ctx, path("/v1/campaigns/{id}/recipients", id), params{"recipient": recipient}.values(), &page)
	if err != nil || len(page.Recipients) == 0 {
		return r, false, err
	}
	return page.Recipients[0], true, nil
}

// AuditChecks lists the checks of each audit.
func (a RecordsAPI) AuditChecks(ctx context.Context) ([]AuditCheck, error) {
	var page AuditsPage
	err := a.c.Get(ctx, "/v1/audits", params{"page_size": 1}.values(), &page)
	return page.Checks, err
}

// ChannelForm has the members of a channel in a request: a type such as [SmsChannelForm], or [ChannelSettings].
type ChannelForm interface{ channelForm() }

func (WebhookChannelForm) channelForm() {}
func (SmsChannelForm) channelForm()     {}
func (EmailChannelForm) channelForm()   {}
func (FcmChannelForm) channelForm()     {}
func (ApnsChannelForm) channelForm()    {}
func (LogChannelForm) channelForm()     {}
func (ChannelSettings) channelForm()    {}

// ChannelSettings are the members of a channel of a tenant, by name. In answers, an object with set and set_at stands for a
// secret.
type ChannelSettings map[string]any

// As copies the members of an answer to a type such as [SmsChannel].
func (s ChannelSettings) As(to any) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// Get is GET /v1/channels/{name}: read a channel. It returns the settings of a channel of the tenant's own among the other
// members of the answer, such as owner and problem.
//
// Refusals of its own: [Forbidden].
func (a ChannelsAPI) Get(ctx context.Context, name string) (ChannelSettings, error) {
	return ask[ChannelSettings](ctx, a.c, call{method: http.MethodGet, path: path("/v1/channels/{name}", name), repeat: true})
}

// Put is PUT /v1/channels/{name}: create or replace a channel of the tenant's own. Secrets that are left out stay. A member of
// [ChannelSettings] that is nil removes one. Do not send the masks of an answer back.
//
// Refusals of its own: [Invalid], [Forbidden].
func (a ChannelsAPI) Put(ctx context.Context, name string, settings ChannelForm) (ChannelSettings, error) {
	return ask[ChannelSettings](ctx, a.c, call{method: http.MethodPut, path: path("/v1/channels/{name}", name), body: settings, repeat: true})
}
