package people

import (
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// This file is what the template of a recipient asks of its view: addresses, and words.

// Link is the address of the page with other values in its query: of the axis, or of one of its forms.
func (v *recipientView) Link(form string, query ...string) string {
	return frame.WithQuery(frame.Root+"/recipients/"+frame.PathPart(v.ID)+form, v.p.Request.URL.Query(), query)
}

// Scales are the scales of the axis with their addresses.
func (v *recipientView) Scales() []axis.Choice {
	var all []axis.Choice
	for _, s := range axis.Scales {
		all = append(all, axis.Choice{
			Name: s.Name, Link: v.Link("", "scale", string(s.Scale), "at", frame.RFC3339(v.centre())), Current: s.Scale == v.Scale,
		})
	}
	return all
}

// AllPushes is the address of the list of all pushes of the axis' time.
func (v *recipientView) AllPushes() string {
	from, until := v.window()
	return v.p.Link("/pushes", "recipient", v.ID, "from", frame.RFC3339(from), "until", frame.RFC3339(until))
}

// LastAttempt is the moment of the last attempt that is shown.
func (v *recipientView) LastAttempt() time.Time { return v.Attempts[len(v.Attempts)-1].StartedAt }

// AttemptsFrom returns the address of the axis at the last shown attempt, on a shorter scale if there is one.
func (v *recipientView) AttemptsFrom() string {
	i := slices.IndexFunc(axis.Scales, func(s axis.NamedScale) bool { return s.Scale == v.Scale })
	return v.Link("", "scale", string(axis.Scales[max(0, i-1)].Scale), "at", frame.RFC3339(v.LastAttempt()), "cursor", "")
}

// centre returns the time that stays visible when the scale changes: the cursor, if it is visible.
func (v *recipientView) centre() time.Time {
	if v.sees(v.Cursor) {
		return v.Cursor
	}
	return v.At
}

// Earlier and Later are the addresses of the axes before and behind this one.
func (v *recipientView) Earlier() string { return v.shifted(-1) }

// Later is Earlier, the other way.
func (v *recipientView) Later() string { return v.shifted(1) }

func (v *recipientView) shifted(by int) string {
	return v.Link("", "at", frame.RFC3339(v.Scale.Shift(v.At, by, v.p.Zones.Shown())), "cursor", "")
}

// ByID finds a push of the axis; nil: it has none of this id.
func (v *recipientView) ByID(id string) *client.Push {
	i := slices.IndexFunc(v.Pushes, func(one client.Push) bool { return one.ID == id })
	if i < 0 {
		return nil
	}
	return &v.Pushes[i]
}

// Movable reports whether the user may move and cancel a push.
func (v *recipientView) Movable(one client.Push) bool {
	return one.Status == client.PushStatusScheduled && v.p.MayWrite()
}

// OptOuts lists the channels and categories that the recipient opted out of.
func (v *recipientView) OptOuts() string {
	o := v.Known.OptOuts
	if o.All {
		return "everything"
	}
	var all []string
	for _, c := range o.Channels {
		all = append(all, "channel "+c)
	}
	for _, c := range o.Categories {
		all = append(all, "category "+c)
	}
	return strings.Join(all, ", ")
}

// Unwanted reports whether the recipient does not want pushes of this kind.
func (v *recipientView) Unwanted() bool {
	o := v.Availability.OptedOut
	return o.All || len(o.Channels)+len(o.Categories) > 0
}
