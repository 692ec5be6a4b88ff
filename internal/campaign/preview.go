package campaign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/zone"
)

// lines reads lines of audiences.
type lines interface {
	Lines(ctx context.Context, p *broadcast.Campaign, recipient string, limit int) ([]campaigns.KnownLine, error)
	LongestLines(ctx context.Context, p *broadcast.Campaign, limit int) ([]campaigns.KnownLine, error)
}

// previewed is the number of lines in a preview.
const previewed = 5

// Preview is the message of a line, or its error.
type Preview struct {
	Recipient string
	Line      int
	To        string          // address of the line; "": none
	Message   json.RawMessage // nil if there is an error
	Size      *sms.Size       // of its text; nil: the channel sends no text messages, or there is an error
	Error     string
}

// ErrNotInAudience: the campaign has no line of that recipient.
var ErrNotInAudience = errors.New("the recipient is not in the audience")

// Which selects lines of an audience for a preview. The zero value selects the first ones.
type Which struct {
	Recipient string // only this one; empty: all
	Longest   bool   // the lines whose variables have the most text
}

// Lines reads the lines of a preview. Its errors are [push.ErrNotFound] and [ErrNotInAudience].
func (s *Service) Lines(ctx context.Context, tenant, id uuid.UUID, which Which) (broadcast.Campaign, []campaigns.KnownLine, error) {
	p, err := s.Campaign(ctx, tenant, id)
	if err != nil {
		return p, nil, err
	}
	if which.Longest {
		lines, err := s.lines.LongestLines(ctx, &p, previewed)
		return p, lines, err
	}
	lines, err := s.lines.Lines(ctx, &p, which.Recipient, previewed)
	if err == nil && which.Recipient != "" && len(lines) == 0 {
		err = ErrNotInAudience
	}
	return p, lines, err
}

// Preview renders the messages of lines. It reads nothing. defaultZone applies to recipients without a zone.
func (s *Service) Preview(p *broadcast.Campaign, lines []campaigns.KnownLine, defaultZone string) ([]Preview, error) {
	template, wrong := liquid.Parse(p.Message)
	if err := wrong.Err(); err != nil {
		return nil, err // it was checked when it was drafted
	}
	all := make([]Preview, len(lines))
	for i, l := range lines {
		bulkhead.Yield()
		all[i] = Preview{Recipient: l.Recipient, Line: l.Line, To: l.To}
		message, err := s.preview(p, template, l, func() time.Time { return s.shownAt(p, cmp.Or(l.TimeZone, defaultZone)) })
		if err != nil {
			all[i].Error = err.Error()
			continue
		}
		all[i].Message, all[i].Size = message, s.cfg.size(p.Tenant, p.Channel, message)
	}
	return all, nil
}

// shownAt returns the time when a campaign would send to a recipient in a zone.
func (s *Service) shownAt(p *broadcast.Campaign, name string) time.Time {
	if !p.LocalTime.IsZero() {
		return p.LocalTime
	}
	at := p.SendAt
	if at.IsZero() {
		at = s.now()
	}
	in, err := zone.Load(name)
	if err != nil {
		in = time.UTC
	}
	return at.In(in)
}

// preview renders a message. Its errors include what the provider would certainly refuse, except the lack of an
// address.
func (s *Service) preview(p *broadcast.Campaign, template Template, l campaigns.KnownLine, at func() time.Time) (json.RawMessage, error) {
	variables, err := liquid.Variables(known(l.AudienceLine, l.Attributes)...)
	if err != nil {
		return nil, err
	}
	message, err := template.Render(variables, at)
	if err != nil || !s.cfg.checks() {
		return message, err
	}
	var bad invalid.FieldErrors
	for _, f := range s.cfg.check(p.Tenant, p.Channel, l.To, message) {
		if f.Field != "to" || l.To != "" {
			bad = append(bad, f)
		}
	}
	if bad != nil {
		return nil, errors.New(bad.WithoutValues())
	}
	return message, nil
}
