package campaign

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Planner says what each line of a campaign's audience asks for. It is safe for concurrent use.
type Planner struct {
	pushes   drafter
	campaign push.Campaign
	message  Template
	now      time.Time
}

// drafter turns a request for a recipient, of whom this is known, into what is to be booked.
type drafter interface {
	Draft(tenant uuid.UUID, r schedule.Request, of booking.Standing) (booking.Draft, error)
}

// Template makes the message of a recipient.
type Template interface {
	Render(variables map[string]any) (json.RawMessage, error)
}

// NewPlanner returns the planner of a campaign that was started at a time, or of a simulation that takes it to be started
// then. However long its booking takes, everybody in it is planned by that time: the last line is not too late because the
// first ones took long.
func NewPlanner(pushes drafter, c push.Campaign, message Template, started time.Time) *Planner {
	return &Planner{pushes, c, message, started.UTC()}
}

// Plan turns a line into what is to be booked for its recipient, of whom this is known. The error says what is invalid about
// the line, without a value of it.
//
// The same line of the same campaign always gets the same id, as long as its recipient's zone stays the same.
func (p *Planner) Plan(line push.CampaignLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
	message, err := p.render(line, attributes)
	if err != nil {
		return booking.Draft{}, err
	}
	return p.draft(line, of, message)
}

// render makes the message of a line.
func (p *Planner) render(line push.CampaignLine, attributes json.RawMessage) (json.RawMessage, error) {
	variables, err := Variables(line, attributes)
	if err != nil {
		return nil, err
	}
	return p.message.Render(variables)
}

// draft is what is to be booked for the message of a line.
func (p *Planner) draft(line push.CampaignLine, of booking.Standing, message json.RawMessage) (booking.Draft, error) {
	c := &p.campaign
	d, err := p.pushes.Draft(c.Tenant, schedule.Request{
		Recipient: line.Recipient, Channel: c.Channel, Category: c.Category, To: line.To, Message: message, Metadata: c.Metadata,
		SendAt: c.SendAt, LocalTime: c.LocalTime, TimeZone: c.TimeZone, Behind: Offset(line.Recipient, c.Spread),
		TTL: c.ExpiresAfter, Defer: c.OnConflict == "defer", Latest: c.Latest, Now: p.now,
	}, of)
	if wrong, ok := errors.AsType[invalid.FieldErrors](err); ok {
		return booking.Draft{}, errors.New(wrong.WithoutValues())
	}
	if err != nil {
		return booking.Draft{}, err
	}
	d.Push.Campaign, d.Push.RequestID = c.ID, c.ID.String()
	d.Push.ID = push.CampaignPushID(c.ID, p.now, d.Push.SendAt, push.RecipientKey(c.Tenant, line.Recipient), line.Recipient)
	return d, nil
}

// at is a planner of the same campaign with another send time.
func (p *Planner) at(sendAt time.Time) *Planner {
	other := *p
	other.campaign.SendAt, other.campaign.LocalTime, other.campaign.TimeZone = sendAt, time.Time{}, ""
	return &other
}
