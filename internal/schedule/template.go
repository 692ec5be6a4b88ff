package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/quota"
)

// planRendered is planFor, with the message that the templates of a request make.
func (s *Service) planRendered(ctx context.Context, tenant uuid.UUID, r Request, known *standings) (d booking.Draft, err error) {
	if !r.Template {
		return s.planFor(ctx, tenant, r, s.cfg.Check, known)
	}
	of, err := s.attributes(ctx, quota.Recipient{Tenant: tenant, ID: r.Recipient}, known)
	if err != nil {
		return d, fmt.Errorf("read attributes: %w", err)
	}
	var wrong invalid.FieldErrors
	err = s.cfg.Computing.Do(ctx, tenant, func() error {
		r.Message, wrong = rendered(&r, of)
		return nil
	})
	if err != nil {
		return d, err
	}
	d, err = s.planFor(ctx, tenant, r, s.cfg.Check, known)
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

// rendered renders the templates of a request.
func rendered(r *Request, stored json.RawMessage) (json.RawMessage, invalid.FieldErrors) {
	template, wrong := liquid.Parse(r.Message)
	if wrong != nil {
		return nil, wrong
	}
	all, err := liquid.Variables(stored)
	if err != nil {
		return nil, invalid.FieldErrors{{Field: "recipient", Message: "has attributes that can not be read"}}
	}
	own, err := liquid.Variables(r.Variables)
	if err != nil {
		return nil, invalid.FieldErrors{{Field: "variables", Message: "can not be read"}}
	}
	maps.Copy(all, own)
	all["recipient"] = r.Recipient
	if r.To != "" {
		all["to"] = r.To
	}
	message, err := template.Render(all)
	if fault, ok := errors.AsType[*liquid.Fault](err); ok {
		return nil, invalid.FieldErrors{{Field: fault.Field, Message: fault.Message}}
	}
	if err != nil {
		return nil, invalid.FieldErrors{{Field: "message", Message: err.Error()}}
	}
	return message, nil
}

// attributes returns what the tenant keeps about a recipient. Those of the recipients of a batch are read when the first is asked
// about, all in one question.
func (s *Service) attributes(ctx context.Context, who quota.Recipient, known *standings) (json.RawMessage, error) {
	ids := []string{who.ID}
	if known != nil {
		if of, read := known.attributes[who.ID]; read {
			return of, nil
		}
		ids = append(ids, known.rendered...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, err := s.store.Attributes(ctx, who.Tenant, ids)
	if err == nil && known != nil {
		known.attributes = make(map[string]json.RawMessage, len(ids))
		for _, id := range ids {
			known.attributes[id] = found[id]
		}
	}
	return found[who.ID], err
}

// ofMessage tells of a fault of the message.
func ofMessage(f invalid.FieldError) bool {
	return f.Field == "message" || strings.HasPrefix(f.Field, "message.")
}
