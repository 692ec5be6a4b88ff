package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// planTemplate plans a request after it has rendered the templates of its message.
func (pl *Planner) planTemplate(ctx context.Context, tenant uuid.UUID, r Request, check messageCheck, known *standings) (d booking.Draft, err error) {
	of, err := pl.attributes(ctx, quota.Recipient{Tenant: tenant, ID: r.Recipient}, known)
	if err != nil {
		return d, fmt.Errorf("read attributes: %w", err)
	}
	at, err := pl.sentAt(ctx, tenant, &r, known)
	if err != nil {
		return d, err
	}
	var (
		wrong invalid.FieldErrors
		dated bool
		again = liquid.Rendering{Message: r.Message, Known: Known(r.Recipient, r.To, of, r.Variables), Zone: at.Location().String()}
	)
	err = pl.cfg.Computing.Do(ctx, tenant, func() error {
		r.Message, dated, wrong = rendered(&r, again.Known, at)
		return nil
	})
	if err != nil {
		return d, err
	}
	d, err = pl.planFor(ctx, tenant, r, check, known)
	if err == nil && dated {
		d.Push.Rendering, err = json.Marshal(again)
	}
	if wrong == nil {
		return d, err
	}
	if others, ok := errors.AsType[invalid.FieldErrors](err); ok {
		return d, append(wrong, slices.DeleteFunc(others, ofMessage)...)
	}
	if err != nil {
		return d, err
	}
	return d, wrong
}

// sentAt returns the send time of a request in the zone of its recipient. It reads the zone only for a message that may
// use the date.
func (pl *Planner) sentAt(ctx context.Context, tenant uuid.UUID, r *Request, known *standings) (time.Time, error) {
	if !bytes.Contains(r.Message, []byte("date")) {
		return time.Time{}, nil
	}
	of, err := pl.standing(ctx, quota.Recipient{Tenant: tenant, ID: r.Recipient}, known)
	if err != nil {
		return time.Time{}, fmt.Errorf("read zone: %w", err)
	}
	return pl.SentAt(*r, of), nil
}

// SentAt returns the send time of a request in the zone of its recipient, or else of the policy, given the recipient's
// standing.
func (pl *Planner) SentAt(r Request, of booking.Standing) time.Time {
	var ignored invalid.FieldErrors // the plan reports them
	in, w := zoneOf(of), r.when()
	named, err := zone.Load(w.TimeZone)
	switch {
	case w.LocalTime.IsZero():
		return pl.sendTime(w.SendAt, w, pl.clock(&r), &ignored).In(in)
	case w.TimeZone == "" || err != nil:
		named = in
	}
	return pl.sendTime(zone.Instant(w.LocalTime, named), w, pl.clock(&r), &ignored).In(in)
}

// rendered renders the templates of a request. dated reports whether the message uses the send time.
func rendered(r *Request, known []json.RawMessage, at time.Time) (message json.RawMessage, dated bool, wrong invalid.FieldErrors) {
	template, wrong := liquid.Parse(r.Message)
	if wrong != nil {
		return nil, false, wrong
	}
	variables, err := liquid.Variables(known...)
	if err != nil {
		return nil, false, invalid.FieldErrors{{Field: "variables", Message: "cannot be read"}}
	}
	message, err = template.Render(variables, func() time.Time {
		dated = true
		return at
	})
	if fault, ok := errors.AsType[*liquid.Fault](err); ok {
		return nil, false, invalid.FieldErrors{{Field: fault.Field, Message: fault.Message}}
	}
	if err != nil {
		return nil, false, invalid.FieldErrors{{Field: "message", Message: err.Error()}}
	}
	return message, dated, nil
}

// Known returns the variables of a message's templates as JSON objects; later ones override earlier ones: the
// attributes of the recipient, the variables of the request or the line, and recipient and to. Without an address, a
// request or a line does not set to.
func Known(recipient, to string, attributes, own json.RawMessage) []json.RawMessage {
	address := struct {
		Recipient string `json:"recipient"`
		To        string `json:"to,omitempty"`
	}{recipient, to}
	text, _ := json.Marshal(address) // strings always marshal
	return []json.RawMessage{attributes, own, text}
}

// attributes returns the stored attributes of a recipient. In a batch, the first call reads the attributes of all
// recipients in one query.
func (pl *Planner) attributes(ctx context.Context, who quota.Recipient, known *standings) (json.RawMessage, error) {
	ids := []string{who.ID}
	if known != nil {
		if of, read := known.attributes[who.ID]; read {
			return of, nil
		}
		ids = append(ids, known.rendered...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, err := pl.store.Attributes(ctx, who.Tenant, ids)
	if err == nil && known != nil {
		known.attributes = make(map[string]json.RawMessage, len(ids))
		for _, id := range ids {
			known.attributes[id] = found[id]
		}
	}
	return found[who.ID], err
}

// ofMessage reports whether a fault is in the message.
func ofMessage(f invalid.FieldError) bool {
	return f.Field == "message" || strings.HasPrefix(f.Field, "message.")
}
