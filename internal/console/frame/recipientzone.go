package frame

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
)

// ZoneOf sets the zone of a recipient on the page: the recipient's own, or else the default of the policy. It returns an error only if times
// are to be shown in that zone.
func (p *Page) ZoneOf(recipient string) error {
	if recipient == "" || p.Zones.Recipient != nil || !p.May(push.ScopeRecipientsRead) {
		return nil
	}
	name, err := p.readZoneOf(recipient)
	switch {
	case err == nil:
		p.UseZone(name)
	case p.Zones.Chosen == "recipient":
		return err
	}
	return nil
}

// readZoneOf returns the name of a recipient's zone; empty if the user cannot see it.
func (p *Page) readZoneOf(recipient string) (string, error) {
	known, err := p.Known(recipient)
	switch {
	case err != nil:
		return "", err
	case known != nil && known.TimeZone != "":
		return known.TimeZone, nil
	case !p.May(push.ScopePolicyRead):
		return "", nil
	}
	policy, err := p.API.Policy.Get(p.Context())
	return cmp.Or(policy.DefaultZone, "UTC"), err
}

// Known returns the profile of a recipient; nil if there is none.
func (p *Page) Known(recipient string) (*client.Recipient, error) {
	found, err := p.API.Recipients.Get(p.Context(), recipient)
	var problem *client.Problem
	switch {
	case err == nil:
		return &found, nil
	case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		return nil, nil
	}
	return nil, err
}

// ZoneOfForm calls ZoneOf if the times of the posted form are in the recipient's zone.
func (p *Page) ZoneOfForm(recipient string) error {
	if p.Zones.Chosen != "recipient" {
		return nil
	}
	return p.ZoneOf(recipient)
}

// UseZone sets the zone of the page's recipient by its name.
func (p *Page) UseZone(name string) {
	if in := LoadZone(name); in != nil {
		p.Zones.Recipient = in
	}
}
