// Package channels has the operations of the REST API on the channels that tenants make.
package channels

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// Path is the path of a channel.
const Path = "/v1/channels/{name}"

// Service changes and tests the channels of tenants.
type Service interface {
	Put(ctx context.Context, tenant uuid.UUID, name string, object json.RawMessage) (c tenantchannel.Channel, created bool, err error)
	Get(ctx context.Context, tenant uuid.UUID, name string) (tenantchannel.Channel, error)
	Delete(ctx context.Context, tenant uuid.UUID, name string, cancel bool) (tenantchannel.Deleted, error)
	Test(ctx context.Context, tenant uuid.UUID, name, to string, message json.RawMessage) (ownchannels.TestResult, error)
	shower
}

// shower shows channels.
type shower interface {
	Members(c tenantchannel.Channel) json.RawMessage
	Problem(c tenantchannel.Channel) string
	Offered(ctx context.Context, tenant uuid.UUID, name string) (bool, error)
}

// channels serves the channels of tenants.
type channels struct {
	svc Service
	tag string
}

// Operations returns the operations on channels of tenants, for a group of the documentation.
func Operations(s *rest.Spec, svc Service, tag string) []rest.Operation {
	h := &channels{svc, tag}
	return h.routes(s)
}

// channelView is a channel with its settings.
type channelView struct {
	Name      string
	Owner     string
	Members   json.RawMessage // nil: the channel is the operator's
	Problem   string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// MarshalJSON writes the settings among the other members.
func (v channelView) MarshalJSON() ([]byte, error) {
	head, err := json.Marshal(struct {
		Name  string `json:"name"`
		Owner string `json:"owner"`
	}{v.Name, v.Owner})
	if err != nil || v.Members == nil {
		return head, err
	}
	tail, err := json.Marshal(struct {
		Problem   *string `json:"problem"`
		CreatedAt string  `json:"created_at"`
		UpdatedAt string  `json:"updated_at"`
	}{orNil(v.Problem), rest.Stamp(v.CreatedAt), rest.Stamp(v.UpdatedAt)})
	parts := [][]byte{head[1 : len(head)-1], bytes.Trim(v.Members, "{}"), tail[1 : len(tail)-1]}
	if len(v.Members) > 2 {
		parts[1] = v.Members[1 : len(v.Members)-1]
	}
	return slices.Concat([]byte{'{'}, bytes.Join(slices.DeleteFunc(parts, func(p []byte) bool { return len(p) == 0 }), []byte{','}), []byte{'}'}), err
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (h *channels) view(c tenantchannel.Channel) channelView {
	return channelView{Name: c.Name, Owner: "tenant", Members: h.svc.Members(c), Problem: h.svc.Problem(c), CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt}
}

func (h *channels) get(c *rest.Call) error {
	if err := c.Errors.Err(); err != nil {
		return err
	}
	ctx, tenant := c.Request.Context(), c.Caller.Tenant
	own, err := h.svc.Get(ctx, tenant, c.Text)
	if err == nil {
		return c.Answer(http.StatusOK, h.view(own))
	}
	if errors.Is(err, push.ErrNotFound) {
		if offered, failed := h.svc.Offered(ctx, tenant, c.Text); offered || failed != nil {
			return cmpErr(failed, func() error { return c.Answer(http.StatusOK, channelView{Name: c.Text, Owner: "operator"}) })
		}
	}
	return rest.NoSuch("channel", err)
}

func cmpErr(err error, then func() error) error {
	if err != nil {
		return err
	}
	return then()
}

// put creates or replaces a channel.
func (h *channels) put(c *rest.Call) error {
	var object json.RawMessage
	if _, err := c.Object(rest.MaxBody, &c.Errors, func(r *rest.Reader) { object = r.Value() }); err != nil {
		return err
	}
	if wrong := tenantchannel.NameFault(c.Text); wrong != "" && !c.Errors.Has("path.name") {
		c.Errors.Add("path.name", wrong, rest.Shown(c.Text))
	}
	own, created, err := h.svc.Put(c.Request.Context(), c.Caller.Tenant, c.Text, object)
	if bad := (invalid.FieldErrors)(nil); errors.As(err, &bad) {
		bad = slices.DeleteFunc(under("body", bad), func(e invalid.FieldError) bool { return c.Errors.Has(e.Field) }) // written twice, for example
		c.Errors.AddAll("", rest.FieldErrors{List: bad})
	}
	if bad := c.Errors.Err(); bad != nil {
		return bad
	}
	switch {
	case err != nil:
		return err
	case created:
		return c.Created("/v1/channels/"+own.Name, false, h.view(own))
	}
	return c.Answer(http.StatusOK, h.view(own))
}

// under returns errors with a prefix before their fields.
func under(prefix string, bad invalid.FieldErrors) invalid.FieldErrors {
	all := slices.Clone(bad)
	for i := range all {
		if all[i].Field == "" {
			all[i].Field = prefix
			continue
		}
		all[i].Field = prefix + "." + all[i].Field
	}
	return all
}

// noSuch returns the error for a channel that is not the tenant's own.
func (h *channels) noSuch(c *rest.Call, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		if offered, _ := h.svc.Offered(c.Request.Context(), c.Caller.Tenant, c.Text); offered {
			return &rest.Refusal{Kind: rest.NotFound, Detail: "you have no channel of that name: it is the operator's, and only the operator can test or delete it"}
		}
	}
	return rest.NoSuch("channel", err)
}

// deletion is the query of a deletion.
type deletion struct{ cancel bool }

var deletionParams = rest.Table[deletion]{Fields: []rest.Field[deletion]{
	rest.Row("pushes", rest.Optional, rest.OneOf(func(d *deletion, _ string) { d.cancel = true }, "cancel"), "cancel: cancel the pushes that are booked for the channel. Without it, they prevent the deletion.", nil),
}}

type deletedView struct {
	Canceled  int `json:"canceled" doc:"The number of canceled pushes. If earlier requests were answered with channel-in-use, those that they canceled count, too."`
	Drafts    int `json:"drafts" doc:"The number of drafts of campaigns that name the channel. They use the operator's channel of that name from now on, or fail if there is none."`
	Schedules int `json:"schedules" doc:"The number of schedules that name it, for which the same holds."`
}

func (h *channels) delete(c *rest.Call) error {
	var d deletion
	deletionParams.ReadQuery(c.Request, &d, &c.Errors)
	if err := c.RejectBody(&c.Errors); err != nil {
		return err
	}
	deleted, err := h.svc.Delete(c.Request.Context(), c.Caller.Tenant, c.Text, d.cancel)
	if err != nil {
		return h.noSuch(c, err)
	}
	return c.Answer(http.StatusOK, deletedView(deleted))
}

// The problems with channels of tenants. Clients know them by their names.
var (
	TooMany = rest.NewKind("too-many-channels", 409, "Too many channels", "The tenant has the maximum number of channels; delete one first.")
	InUse   = rest.NewKind("channel-in-use", 409, "Channel in use", "Pushes are booked for the channel: cancel them first, or add ?pushes=cancel. Or an attempt is under way: repeat the request when it has ended. Or a campaign in progress has more recipients: cancel it first.")
	Unready = rest.NewKind("channel-unusable", 409, "Channel unusable", "The channel cannot be used or changed now; detail has the reason.")
)

// inUseProblem has the numbers of what uses the channel.
type inUseProblem struct {
	rest.Problem
	Pushes    int `json:"pushes" doc:"The number of booked pushes."`
	Canceled  int `json:"canceled" doc:"The number of pushes that this deletion has canceled so far, by this request and earlier ones."`
	Campaigns int `json:"campaigns" doc:"The number of campaigns in progress that have more recipients. Cancel them before the channel is deleted, whatever pushes says."`
}

// ProblemOf returns the problem for an error about channels of tenants, or nil.
func ProblemOf(err error) rest.Problemer {
	if used := (*tenantchannel.InUseError)(nil); errors.As(err, &used) {
		detail := used.Error()
		if used.Campaigns == 0 && !used.Canceling {
			detail += "; cancel them first, or add ?pushes=cancel"
		}
		return &inUseProblem{InUse.Because(detail), used.Pushes, used.Canceled, used.Campaigns}
	}
	if many := (*tenantchannel.TooManyTestsError)(nil); errors.As(err, &many) {
		return rest.LimitedFor(many.Error(), many.In).Policy("channel-tests", tenantchannel.TestsPerHour, time.Hour)
	}
	if errors.Is(err, ownchannels.ErrUnusable) {
		p := Unready.Because(err.Error())
		return &p
	}
	return rest.PlainProblem(err, []rest.Plain{
		rest.PlainOf(tenantchannel.ErrTooMany, TooMany, "the tenant has the maximum number of channels; delete one first"),
		rest.PlainOf(tenantchannel.ErrDeleting, Unready, "the channel is being deleted; repeat the deletion to end it"),
		rest.PlainOf(tenantchannel.ErrBusy, Unready, "other requests that use the channel take too long; try again"),
	})
}

// ExampleOf returns an example of a kind of problem with its members, or nil.
func ExampleOf(k rest.Kind) rest.Problemer {
	if k != InUse {
		return nil
	}
	return &inUseProblem{InUse.Because("212 pushes are booked for the channel; cancel them first, or add ?pushes=cancel"), 212, 0, 0}
}
