package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// ofChannel is a command about a channel that a tenant has made.
type ofChannel struct {
	jsonFlag
	Tenant string `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Name   string `arg:"" help:"Name of the channel."`
}

// Validate is called by kong.
func (c ofChannel) Validate() error {
	if wrong := tenantchannel.NameFault(c.Name); wrong != "" {
		return fmt.Errorf("%s: the name of a channel %s", brief(c.Name), wrong)
	}
	return nil
}

// withChannels runs work with the channels of the tenant.
func (c ofChannel) withChannels(work func(ctx context.Context, svc *ownchannels.Service, tenant uuid.UUID) error) error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Tenant)
		if err != nil {
			return err
		}
		if err := st.NoteSealKey(ctx, false); err != nil { // the programs could not open what another key seals
			return err
		}
		err = work(ctx, app.OwnChannels(cfg, st, slog.New(slog.DiscardHandler)), tenant)
		if errors.Is(err, push.ErrNotFound) {
			return fmt.Errorf("tenant %s has no channel %s of its own; see: sendquota channels list --tenant %[1]s", brief(c.Tenant), brief(c.Name))
		}
		return err
	})
}

type setChannel struct {
	ofChannel
	File string `arg:"" help:"A file with the members of the channel, a JSON object as for PUT /v1/channels/{name}. Secrets that it leaves out stay. -: standard input."`
}

// Run prints the channel with masks instead of secrets.
func (c setChannel) Run() error {
	object, err := readObject(c.File)
	if err != nil {
		return err
	}
	return c.withChannels(func(ctx context.Context, svc *ownchannels.Service, tenant uuid.UUID) error {
		channel, created, err := svc.Put(ctx, tenant, c.Name, object)
		if err != nil {
			return err
		}
		verb := map[bool]string{true: "created", false: "changed"}[created]
		return c.print(map[string]any{"name": c.Name, "created": created, "settings": svc.Members(channel)}, "channel %s of %s is %s; all programs use it within 2 seconds\n", c.Name, c.Tenant, verb)
	})
}

// readObject reads a JSON object from a file.
func readObject(file string) (json.RawMessage, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == "-" {
		read = func() ([]byte, error) { return io.ReadAll(os.Stdin) }
	}
	text, err := read()
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s: must be a JSON object", file)
	}
	return text, nil
}

type testChannel struct {
	ofChannel
	To      string `placeholder:"ADDRESS" help:"The address to send to."`
	Message string `default:"{\"title\": \"Test\", \"body\": \"This is a test.\"}" placeholder:"JSON" help:"The message, a JSON object; @FILE reads a file. Default: a short text."`
}

// Run makes one attempt, and fails unless it was delivered.
func (c testChannel) Run() error {
	message := json.RawMessage(c.Message)
	if file, named := strings.CutPrefix(c.Message, "@"); named {
		read, err := readObject(file)
		if err != nil {
			return err
		}
		message = read
	}
	if !json.Valid(message) || !strings.HasPrefix(strings.TrimSpace(string(message)), "{") {
		return errors.New("--message: must be a JSON object, or @ and the name of a file")
	}
	return c.withChannels(func(ctx context.Context, svc *ownchannels.Service, tenant uuid.UUID) error {
		r, err := svc.Test(ctx, tenant, c.Name, c.To, message)
		if err != nil {
			return err
		}
		shown := map[string]any{"outcome": r.Outcome, "error": r.Error, "provider_message_id": r.ProviderMessageID, "ms": r.Took.Milliseconds()}
		if err := c.print(shown, "%s %s after %d ms\n", r.Outcome, r.ProviderMessageID, r.Took.Milliseconds()); err != nil {
			return err
		}
		if r.Outcome != push.Delivered {
			return fmt.Errorf("the message was not delivered: %s", r.Error)
		}
		return nil
	})
}

type deleteChannel struct {
	ofChannel
	CancelPushes bool `help:"Cancel the pushes that are booked for the channel. Without it, they prevent the deletion."`
}

func (c deleteChannel) Run() error {
	return c.withChannels(func(ctx context.Context, svc *ownchannels.Service, tenant uuid.UUID) error {
		deleted, err := svc.Delete(ctx, tenant, c.Name, c.CancelPushes)
		if used := (*tenantchannel.InUseError)(nil); errors.As(err, &used) && used.Campaigns == 0 && !c.CancelPushes {
			return fmt.Errorf("%w; to cancel them: --cancel-pushes", err)
		}
		if err != nil {
			return err
		}
		left := ""
		if deleted.Drafts+deleted.Schedules > 0 {
			left = fmt.Sprintf("%d drafts of campaigns and %d schedules name it: from now on they use the operator's channel of that name, or fail if there is none\n", deleted.Drafts, deleted.Schedules)
		}
		shown := map[string]any{"name": c.Name, "canceled": deleted.Canceled, "drafts": deleted.Drafts, "schedules": deleted.Schedules}
		return c.print(shown, "channel %s of %s is deleted, and %d pushes are canceled\n%s", c.Name, c.Tenant, deleted.Canceled, left)
	})
}
