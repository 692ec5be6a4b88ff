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
	exitUsage   = 2 // also: there is no key, or a file cannot be read
	exitRefused = 3 // by the API, or there was no answer, or it could not be printed
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
	Status string `enum:",draft,starting,running,pausing,paused,canceling,canceled,finished" default:"" help:"Only those in this state."`
	Limit  int    `default:"50" help:"How many, the latest first. Default: ${default}."`
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

// sendTime is when a campaign is sent, to be read.
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

// notSent counts those who were not, and will not be, sent it.
func notSent(p client.Progress) int64 {
	return p.Refused + p.OptedOut + p.Invalid + p.Failed + p.Expired + p.Canceled
}

type showCampaign struct {
	apiFlags
	ID         string `arg:"" help:"The id of the campaign."`
	Recipients string `placeholder:"FILE" help:"Write each recipient, with what became of it and why, to this file: CSV or, if its name ends in .ndjson or .jsonl, NDJSON. -: standard output, in the place of the campaign."`
	Dialect    string `enum:"excel,plain" default:"excel" help:"Of CSV: excel (opened by a double click: a byte order mark, semicolons, Windows line ends) or plain (commas). Default: ${default}."`
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

// export writes the recipients. What is not complete is removed.
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
		return fmt.Errorf("the export broke off: %w", err)
	}
	return file.Close()
}

// turnCampaign is a command that changes the state of a campaign.
type turnCampaign struct {
	apiFlags
	ID string `arg:"" help:"The id of the campaign."`
	jsonFlag
}

func (c turnCampaign) turn(do func(client.CampaignsAPI, context.Context, string) (client.Campaign, error)) error {
	return c.withAPI("campaigns:write", func(ctx context.Context, api *client.Client) error {
		p, err := do(api.Campaigns, ctx, c.ID)
		if err != nil {
			return err
		}
		return printCampaign(os.Stdout, p, c.JSON)
	})
}

type startCampaign struct{ turnCampaign }

func (c startCampaign) Run() error { return c.turn(client.CampaignsAPI.Start) }

type pauseCampaign struct{ turnCampaign }

func (c pauseCampaign) Run() error { return c.turn(client.CampaignsAPI.Pause) }

type resumeCampaign struct{ turnCampaign }

func (c resumeCampaign) Run() error { return c.turn(client.CampaignsAPI.Resume) }

type cancelCampaign struct{ turnCampaign }

func (c cancelCampaign) Run() error { return c.turn(client.CampaignsAPI.Cancel) }
