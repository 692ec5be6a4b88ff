package pauses

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

// maxReason is the maximum length of a reason in bytes.
const maxReason = 500

// pauseForm is a pause in a request.
type pauseForm struct {
	pause.Pause
	named bool        // name is present, and not null
	given pause.Given // the members that are present, also as null
}

var pauseFields = rest.Table[pauseForm]{SchemaName: "NewPause", Check: (*pauseForm).check, Fields: []rest.Field[pauseForm]{
	rest.Row("scope", rest.Required, rest.OneOf(func(f *pauseForm, s pause.Scope) { f.Scope = s }, pause.Scopes...),
		"What to stop: everything, or the pushes of a channel, a category or a campaign.", "channel"),
	rest.Row("name", rest.Optional, rest.Named(func(f *pauseForm, s string) { f.Name, f.named = s, true }, 1, pushes.MaxCategory).OrNull(func(*pauseForm) {}),
		"The channel, the category, or the id of the campaign. Required, unless the scope is all; then it must be absent or null.", "push"),
	rest.Row("reason", rest.Optional, rest.Text(func(f *pauseForm, s string) { f.Reason, f.given.Reason = s, true }, 0, maxReason).OrNull(func(f *pauseForm) { f.given.Reason = true }),
		"Why sending is paused; people see it. null, the default: no reason.", "wrong text"),
	rest.Row("until", rest.Optional, rest.Moment(func(f *pauseForm, t time.Time) { f.Until, f.given.Until = t, true }).OrNull(func(f *pauseForm) { f.given.Until = true }),
		"The end of the pause, with a zone, in the future. null, the default: the pause goes on until it is deleted.", nil),
}}

const noCampaign = "there is no such campaign"

// check adds errors that concern several members.
func (f *pauseForm) check(errs *rest.FieldErrors) {
	switch {
	case errs.Has("scope") || errs.Has("name"):
	case f.Scope == pause.All && f.named:
		errs.Add("name", "must be absent, because the scope is all", f.Name)
	case f.Scope != pause.All && !f.named:
		errs.Add("name", "is required for the scope "+string(f.Scope), nil)
	case f.Scope == pause.Campaign:
		id, err := uuid.Parse(f.Name)
		if err != nil || len(f.Name) != len(uuid.Nil.String()) {
			errs.Add("name", "must be the id of a campaign, a UUID", f.Name)
			return
		}
		f.Name = id.String()
	}
}

// readPause reads a pause, with all errors of its members at once.
func (h *pauses) readPause(c *rest.Call) (f pauseForm, err error) {
	var found rest.FieldErrors
	if _, err = c.Object(rest.MaxBody, &c.Errors, func(r *rest.Reader) { pauseFields.Read(r, &f, &found) }); err != nil {
		return f, err
	}
	if now := c.Now(); !f.Until.IsZero() && !f.Until.After(now) {
		found.List.Add("until", rest.Stamp(f.Until), "must be in the future; it is now %s", invalid.Now(now))
	}
	if !found.Has("scope") && !found.Has("name") {
		if err := h.checkName(c, &f, &found); err != nil {
			return f, err
		}
	}
	c.Errors.AddAll("body", found)
	return f, c.Errors.Err()
}

// checkName adds an error for a channel or a campaign that does not exist.
func (h *pauses) checkName(c *rest.Call, f *pauseForm, found *rest.FieldErrors) error {
	switch f.Scope {
	case pause.Channel:
		if wrong := invalid.UnknownName("channel", f.Name, h.names.Channels(c.Caller.Tenant)); wrong != "" {
			found.Add("name", wrong, f.Name)
		}
	case pause.Campaign:
		_, err := h.store.Campaign(c.Request.Context(), c.Caller.Tenant, uuid.MustParse(f.Name))
		if errors.Is(err, push.ErrNotFound) {
			found.Add("name", noCampaign, f.Name)
			return nil
		}
		return err
	}
	return nil
}
