package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/app"
)

// Exit statuses of the commands about campaigns.
const (
	exitNotAll  = 1 // some recipients were not sent it
	exitUsage   = 2 // also: no key, or a file that cannot be read
	exitRefused = 3 // the API refused or did not answer, or the result could not be printed
)

// withAPI runs work with a client.
func (f apiFlags) withAPI(scope string, work func(ctx context.Context, api *client.Client) error) error {
	api, err := f.open(scope, client.Config{})
	if err != nil {
		return exitStatus{err, exitUsage}
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	err = work(ctx, api)
	if ctx.Err() != nil && !errors.As(err, new(exitStatus)) {
		return exitStatus{errors.New("interrupted"), exitNotAll}
	}
	if err != nil && !errors.As(err, new(exitStatus)) {
		return exitStatus{refusal(err), exitRefused}
	}
	return err
}

type listCampaigns struct {
	apiFlags
	Status string `enum:",draft,starting,running,pausing,paused,canceling,canceled,finished" default:"" help:"Only campaigns in this state."`
	Limit  int    `default:"50" help:"The maximum number, the latest first. Default: ${default}."`
	jsonFlag
}

func (c listCampaigns) Run() error {
	return c.withAPI("campaigns:read", func(ctx context.Context, api *client.Client) error {
		all := []client.Campaign{}
		for p, err := range api.Campaigns.List(ctx, client.CampaignsOptions{Status: client.CampaignStatus(c.Status)}) {
			if err != nil {
				return err
			}
			if len(all) == c.Limit {
				break
			}
			all = append(all, p)
		}
		titles := []string{"ID", "STATUS", "SEND AT", "RECIPIENTS", "SENT", "WAITING", "NOT SENT", "NAME"}
		return printList(os.Stdout, c.JSON, "campaigns", all, titles, func(p client.Campaign) []string {
			return []string{
				p.ID, stateWords(p), sendTime(p), fmt.Sprint(p.Audience), fmt.Sprint(p.Progress.Sent),
				fmt.Sprint(p.Progress.Pending + p.Progress.Scheduled), fmt.Sprint(notSent(p.Progress)), p.Name,
			}
		})
	})
}

// sendTime formats the send time of a campaign for people.
func sendTime(p client.Campaign) string {
	switch {
	case p.LocalTime != "" && p.TimeZone == "":
		return p.LocalTime + " local"
	case p.LocalTime != "":
		return p.LocalTime + " " + p.TimeZone
	case !p.SendAt.IsZero():
		return p.SendAt.UTC().Format(time.RFC3339)
	case !p.StartedAt.IsZero():
		return p.StartedAt.UTC().Format(time.RFC3339)
	}
	return "when started"
}

// notSent counts the recipients that were not, and will not be, sent the message.
func notSent(p client.Progress) int64 {
	return p.Refused + p.OptedOut + p.Invalid + p.Failed + p.Expired + p.Canceled
}

type showCampaign struct {
	apiFlags
	ID         string `arg:"" help:"The id of the campaign."`
	Recipients string `placeholder:"FILE" help:"Write each recipient, with the outcome and the reason, to this file: CSV or, if its name ends in .ndjson or .jsonl, NDJSON. -: standard output, instead of the campaign."`
	Dialect    string `enum:"excel,plain" default:"excel" help:"The dialect of CSV: excel (a byte order mark, semicolons, Windows line ends, for a double click) or plain (commas). Default: ${default}."`
	jsonFlag
}

func (c showCampaign) Run() error {
	return c.withAPI("campaigns:read", func(ctx context.Context, api *client.Client) error {
		p, err := api.Campaigns.Get(ctx, c.ID)
		if err == nil && c.Recipients != "" {
			err = c.export(ctx, api)
		}
		if err != nil {
			return err
		}
		if c.Recipients == "-" {
			return nil
		}
		return printCampaign(os.Stdout, p, c.JSON)
	})
}

// export writes the recipients. It removes an incomplete file.
func (c showCampaign) export(ctx context.Context, api *client.Client) error {
	options, format := client.ExportCampaignRecipientsOptions{}, formatOf(c.Recipients)
	if format == client.CSV {
		options.Dialect = c.Dialect
	}
	lines, err := api.Campaigns.ExportRecipients(ctx, c.ID, options, format)
	if err != nil {
		return err
	}
	defer lines.Close()
	if c.Recipients == "-" {
		_, err = io.Copy(os.Stdout, lines)
		return err
	}
	file, err := os.OpenFile(c.Recipients, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // it names people
	if err != nil {
		return err
	}
	if _, err = io.Copy(file, lines); err != nil {
		_ = file.Close()
		_ = os.Remove(c.Recipients)
		return fmt.Errorf("the export stopped before its end: %w", err)
	}
	return file.Close()
}

// changeCampaign is a command that changes the state of a campaign.
type changeCampaign struct {
	apiFlags
	ID string `arg:"" help:"The id of the campaign."`
	jsonFlag
}

func (c changeCampaign) change(do func(client.CampaignsAPI, context.Context, string) (client.Campaign, error)) error {
	return c.withAPI("campaigns:write", func(ctx context.Context, api *client.Client) error {
		p, err := do(api.Campaigns, ctx, c.ID)
		if err != nil {
			return err
		}
		return printCampaign(os.Stdout, p, c.JSON)
	})
}

type startCampaign struct{ changeCampaign }

func (c startCampaign) Run() error { return c.change(client.CampaignsAPI.Start) }

type pauseCampaign struct{ changeCampaign }

func (c pauseCampaign) Run() error { return c.change(client.CampaignsAPI.Pause) }

type resumeCampaign struct{ changeCampaign }

func (c resumeCampaign) Run() error { return c.change(client.CampaignsAPI.Resume) }

type cancelCampaign struct{ changeCampaign }

func (c cancelCampaign) Run() error { return c.change(client.CampaignsAPI.Cancel) }
