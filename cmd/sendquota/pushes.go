package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/store/accounts"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// pushView is a push without its message and its address.
type pushView struct {
	ID                uuid.UUID   `json:"id"`
	Tenant            string      `json:"tenant"`
	Recipient         string      `json:"recipient"`
	Channel           string      `json:"channel"`
	Category          string      `json:"category"`
	Status            push.Status `json:"status"`
	RequestedSendAt   time.Time   `json:"requested_send_at"`
	SendAt            time.Time   `json:"send_at"`
	Held              *heldView   `json:"held"`            // null: it was not held
	NextAt            *time.Time  `json:"next_attempt_at"` // null: it has ended
	ExpiresAt         time.Time   `json:"expires_at"`
	Attempts          int         `json:"attempts"`
	LastError         string      `json:"last_error"`
	PossiblyDelivered bool        `json:"possibly_delivered"`
	Campaign          *uuid.UUID  `json:"campaign"`
	RequestID         string      `json:"request_id"`
	CreatedAt         time.Time   `json:"created_at"`
	Sends             []sendView  `json:"sends,omitempty"`
}

// heldView has the last reason why a push was not sent when it was due.
type heldView struct {
	By    string     `json:"by"` // a rule, or a pause
	Since time.Time  `json:"since"`
	Until *time.Time `json:"until"` // null: unknown
}

// sendView is an attempt.
type sendView struct {
	Attempt   int          `json:"attempt"`
	StartedAt time.Time    `json:"started_at"`
	EndedAt   *time.Time   `json:"ended_at"`
	Outcome   push.Outcome `json:"outcome"`
	Error     string       `json:"error"`
}

func pushViewOf(tenant string, p push.Push) pushView {
	v := pushView{
		ID: p.ID, Tenant: tenant, Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, Status: p.Status, RequestedSendAt: p.RequestedSendAt.UTC(), SendAt: p.SendAt.UTC(),
		ExpiresAt: p.ExpiresAt.UTC(), Attempts: p.Attempts, LastError: p.LastError, PossiblyDelivered: p.PossiblyDelivered, RequestID: p.RequestID, CreatedAt: p.CreatedAt.UTC(),
	}
	if p.Status == push.Scheduled {
		v.NextAt = orNil(p.NextAt.UTC())
	}
	if p.Held.By != "" {
		v.Held = &heldView{p.Held.By, p.Held.Since.UTC(), orNil(p.Held.Until.UTC())}
	}
	if p.Campaign != uuid.Nil {
		v.Campaign = &p.Campaign
	}
	for _, s := range p.Sends {
		v.Sends = append(v.Sends, sendView{s.Attempt, s.StartedAt.UTC(), orNil(s.EndedAt.UTC()), s.Outcome, s.Error})
	}
	return v
}

type onePush struct {
	jsonFlag
	ID uuid.UUID `arg:"" help:"The id of the push."`
}

// with runs work for the push and its tenant, and prints the push that it returns.
func (c onePush) with(work func(ctx context.Context, st *store.Store, tenant uuid.UUID) (push.Push, error)) error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, name, err := st.PushOwner(ctx, c.ID)
		if err == nil {
			var p push.Push
			if p, err = work(ctx, st, tenant); err == nil {
				return c.show(pushViewOf(name, p))
			}
		}
		if errors.Is(err, push.ErrNotFound) {
			return fmt.Errorf("there is no push %s; see: sendquota push list", c.ID)
		}
		return err
	})
}

// show prints a push, and its attempts.
func (c onePush) show(v pushView) error {
	text := fmt.Sprintf("push        %s\ntenant      %s\nrecipient   %s\nchannel     %s\nstatus      %s\nsend at     %s\nexpires at  %s\nattempts    %d\nlast error  %s\nrequest     %s\n",
		v.ID, v.Tenant, v.Recipient, v.Channel, v.Status, timeOrDash(&v.SendAt), timeOrDash(&v.ExpiresAt), v.Attempts, v.LastError, v.RequestID)
	if v.Held != nil {
		text += fmt.Sprintf("held by     %s, since %s, until %s\n", v.Held.By, timeOrDash(&v.Held.Since), timeOrDash(v.Held.Until))
	}
	for _, s := range v.Sends {
		text += fmt.Sprintf("attempt %d   %s %s %s\n", s.Attempt, timeOrDash(&s.StartedAt), s.Outcome, s.Error)
	}
	return c.print(v, "%s", text)
}

type getPush struct{ onePush }

func (c getPush) Run() error {
	return c.with(func(ctx context.Context, st *store.Store, tenant uuid.UUID) (push.Push, error) {
		return st.Push(ctx, tenant, c.ID)
	})
}

type cancelPush struct{ onePush }

func (c cancelPush) Run() error {
	return c.with(func(ctx context.Context, st *store.Store, tenant uuid.UUID) (push.Push, error) {
		p, err := st.Cancel(ctx, tenant, c.ID)
		if errors.Is(err, push.ErrNotCancelable) {
			err = fmt.Errorf("the push %s is %s, and cannot be canceled", c.ID, p.Status)
		}
		return p, err
	})
}

type listPushes struct {
	listOfTenant
	Recipient string `placeholder:"ID" help:"Only pushes to this recipient."`
	Channel   string `placeholder:"NAME" help:"Only pushes through this channel."`
	Category  string `placeholder:"NAME" help:"Only pushes of this category."`
	Status    string `enum:",scheduled,sending,sent,failed,canceled,expired" default:"" help:"Only pushes in this state."`
	From      moment `placeholder:"TIME" help:"Only pushes with a send time at or after this time (RFC 3339)."`
	Until     moment `placeholder:"TIME" help:"Only pushes with a send time before this time."`
	Limit     int    `default:"50" help:"The maximum number. Default: ${default}."`
}

// Validate is called by kong.
func (c listPushes) Validate() error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit %d: must be 1 or more", c.Limit)
	}
	return nil
}

func (c listPushes) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		f := push.Filter{Recipient: c.Recipient, Channel: c.Channel, Category: c.Category, Status: push.Status(c.Status), From: c.From.Time, Until: c.Until.Time}
		if f.Until.IsZero() {
			f.Until = booking.EndOfTime
		}
		views := []pushView{}
		err := st.EachTenant(ctx, tenant, func(t accounts.TenantInfo) error {
			for after := (push.Position{}); len(views) < c.Limit; {
				page, err := st.List(ctx, t.ID, f, after, min(c.Limit-len(views), 1000))
				for _, p := range page.Pushes {
					views = append(views, pushViewOf(t.Name, p))
				}
				if err != nil || page.Next == nil {
					return err
				}
				after = *page.Next
			}
			return nil
		})
		if err != nil {
			return err
		}
		titles := []string{"ID", "TENANT", "RECIPIENT", "CHANNEL", "STATUS", "SEND AT", "ATTEMPTS", "LAST ERROR"}
		return printList(os.Stdout, c.JSON, "pushes", views, titles, func(v pushView) []string {
			return []string{v.ID.String(), v.Tenant, v.Recipient, v.Channel, string(v.Status), timeOrDash(&v.SendAt), strconv.Itoa(v.Attempts), v.LastError}
		})
	})
}
