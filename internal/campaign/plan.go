package campaign

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Planner plans the push of each line of a campaign's audience. It is safe for concurrent use.
type Planner struct {
	pushes   drafter
	campaign broadcast.Campaign
	message  Template
	now      time.Time
}

// drafter turns a request into a draft, given the standing of its recipient.
type drafter interface {
	Draft(tenant uuid.UUID, r schedule.Request, of booking.Standing) (booking.Draft, error)
	SentAt(r schedule.Request, of booking.Standing) time.Time
}

// Template renders the message of a recipient. at returns the send time, in the recipient's zone.
type Template interface {
	Render(variables map[string]any, at func() time.Time) (json.RawMessage, error)
}

// NewPlanner returns the planner of a campaign that was started at a time, or of a simulation of such a start. All
// lines are planned by that time, however long booking takes: the last line is not too late because the first ones took
// long.
func NewPlanner(pushes drafter, c broadcast.Campaign, message Template, started time.Time) *Planner {
	return &Planner{pushes, c, message, started.UTC()}
}

// Plan turns a line into a draft, given the standing of its recipient. Its error describes the faults of the line,
// without the line's values.
//
// The same line of the same campaign always gets the same id, as long as its recipient's zone stays the same.
func (p *Planner) Plan(line broadcast.AudienceLine, of booking.Standing, attributes json.RawMessage) (booking.Draft, error) {
	variables, err := liquid.Variables(known(line, attributes)...)
	if err != nil {
		return booking.Draft{}, err
	}
	var sentAt time.Time // zero: the message does not use it
	c := &p.campaign
	r := schedule.Request{
		Content: push.Content{Recipient: line.Recipient, Channel: c.Channel, Category: c.Category, To: line.To, Metadata: c.Metadata},
		SendAt:  c.SendAt, LocalTime: c.LocalTime, TimeZone: c.TimeZone, Behind: Offset(line.Recipient, c.Spread), TTL: c.ExpiresAfter, Defer: c.OnConflict == "defer", Latest: c.Latest, Now: p.now,
	}
	if r.Message, err = p.message.Render(variables, func() time.Time {
		sentAt = p.pushes.SentAt(r, of)
		return sentAt
	}); err != nil {
		return booking.Draft{}, err
	}
	d, err := p.pushes.Draft(c.Tenant, r, of)
	if wrong, ok := errors.AsType[invalid.FieldErrors](err); ok {
		return booking.Draft{}, errors.New(wrong.WithoutValues())
	}
	if err != nil {
		return booking.Draft{}, err
	}
	if !sentAt.IsZero() {
		again := liquid.Rendering{Message: c.Message, Known: known(line, attributes), Zone: sentAt.Location().String()}
		if d.Push.Rendering, err = json.Marshal(again); err != nil {
			return booking.Draft{}, err
		}
	}
	d.Push.Campaign, d.Push.RequestID = c.ID, c.ID.String()
	d.Push.ID = push.CampaignPushID(c.ID, p.now, d.Push.SendAt, push.RecipientKey(c.Tenant, line.Recipient), line.Recipient)
	return d, nil
}

// known returns the variables of a line whose recipient has these attributes.
func known(line broadcast.AudienceLine, attributes json.RawMessage) []json.RawMessage {
	return schedule.Known(line.Recipient, line.To, attributes, line.Variables)
}

// at returns a planner of the same campaign with another send time.
func (p *Planner) at(sendAt time.Time) *Planner {
	other := *p
	other.campaign.SendAt, other.campaign.LocalTime, other.campaign.TimeZone = sendAt, time.Time{}, ""
	return &other
}

// Offset returns a recipient's offset from the first send time of a campaign with a spread: whole seconds, at least 0
// and less than the spread. It is ⌊h·s/2⁶⁴⌋ seconds, where h is the first eight bytes of the SHA-256 of the recipient's
// id, the highest first, and s is the spread in seconds, rounded up.
//
// So it follows from the recipient and the spread alone: a recipient has the same offset in each campaign with the same
// spread, and recipients have the same order in all campaigns. The formula must not change, so that two campaigns keep
// their distance for every recipient.
func Offset(recipient string, spread time.Duration) time.Duration {
	if spread <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(recipient))
	seconds := uint64((spread-1)/time.Second) + 1
	offset, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), seconds)
	return time.Duration(offset) * time.Second
}

// Parse parses the template of a campaign's message.
func Parse(c *broadcast.Campaign) (Template, error) {
	t, wrong := liquid.Parse(c.Message)
	return t, wrong.Err()
}
