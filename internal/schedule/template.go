package schedule

import (
	"bytes"
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
)

// attributes are what tenants keep about recipients, by their ids, as they were read for a batch; nil: they were not read.
type attributes map[string]json.RawMessage

// planRendered is planFor, with the message that the templates of a request make.
func (s *Service) planRendered(ctx context.Context, tenant uuid.UUID, r Request, known standings, of attributes) (d booking.Draft, err error) {
	if !r.Template {
		return s.planFor(ctx, tenant, r, s.cfg.Check, known)
	}
	if of == nil {
		if of, err = s.store.Attributes(ctx, tenant, []string{r.Recipient}); err != nil {
			return d, fmt.Errorf("read attributes: %w", err)
		}
	}
	var wrong invalid.FieldErrors
	err = s.cfg.Computing.Do(ctx, tenant, func() error {
		r.Message, wrong = rendered(&r, of[r.Recipient])
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
	all, own := map[string]any{}, map[string]any{}
	for text, to := range map[*json.RawMessage]*map[string]any{&stored: &all, &r.Variables: &own} {
		if len(*text) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(*text))
		d.UseNumber() // an id may be too long for a float
		if d.Decode(to) != nil {
			return nil, invalid.FieldErrors{{Field: "variables", Message: "can not be read"}}
		}
	}
	maps.Copy(all, own)
	all["recipient"], all["to"] = r.Recipient, r.To
	message, err := template.Render(all)
	if fault, ok := errors.AsType[*liquid.Fault](err); ok {
		return nil, invalid.FieldErrors{{Field: fault.Field, Message: fault.Message}}
	}
	if err != nil {
		return nil, invalid.FieldErrors{{Field: "message", Message: err.Error()}}
	}
	return message, nil
}

// attributesOf reads once for a batch what the templates of its members need.
func (s *Service) attributesOf(ctx context.Context, tenant uuid.UUID, members []Member) (attributes, error) {
	var ids []string
	seen := map[string]bool{}
	for i := range members {
		if r := &members[i].Request; r.Template && members[i].Err == nil && !seen[r.Recipient] {
			ids, seen[r.Recipient] = append(ids, r.Recipient), true
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return s.store.Attributes(ctx, tenant, ids)
}

// ofMessage tells of a fault of the message.
func ofMessage(f invalid.FieldError) bool {
	return f.Field == "message" || strings.HasPrefix(f.Field, "message.")
}
