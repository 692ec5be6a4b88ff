package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

type runCampaign struct {
	apiFlags
	File         string `arg:"" help:"The recipients: CSV with a header line and a column recipient, or, if its name ends in .ndjson or .jsonl, NDJSON. -: standard input."`
	Name         string `help:"The name of the campaign. Default: the name of the file."`
	Channel      string `help:"The channel that delivers it. Default: the API's first one."`
	Category     string `help:"A label, such as marketing, for rules, quiet hours and opt-outs."`
	Message      string `required:"" placeholder:"JSON|@FILE" help:"The message, an object of JSON, or @ and a file with it. {{ column }} in its texts is replaced for each recipient."`
	SendAt       moment `placeholder:"TIME" xor:"when" help:"The send time, with a zone: 2026-12-01T09:00:00+01:00. Default: the time of the start."`
	LocalTime    string `placeholder:"TIME" xor:"when" help:"The send time on the clocks of each recipient: 2026-12-01T09:00."`
	TimeZone     string `placeholder:"ZONE" help:"The zone of --local-time, such as Europe/Berlin. Default: each recipient's."`
	Spread       string `placeholder:"SPAN" help:"Spread the recipients over this time, such as 30m. Default: all at once."`
	OnConflict   string `enum:"reject,defer" default:"reject" help:"For recipients whose quota is full then: reject (they get nothing), or defer (to their next free time). Default: ${default}."`
	Latest       moment `placeholder:"TIME" help:"Defer no recipient to a time after this."`
	ExpiresAfter string `placeholder:"SPAN" help:"How long after its time a push can still be sent, such as 4h. Default: as the API is configured."`
	Format       string `enum:"auto,csv,ndjson" default:"auto" help:"The format of the file: csv, ndjson, or auto: by its name."`
	Simulate     bool   `help:"Only show what would happen. Nothing is booked, and the draft is removed."`
	Wait         bool   `help:"Wait until everything is sent. Default: until each recipient has a place, or was refused one."`
	Yes          bool   `short:"y" help:"Do not ask before the start. Without a terminal, it never asks."`
	jsonFlag
}

// Help explains the steps and the exit statuses.
func (runCampaign) Help() string {
	return `It uploads the recipients, asks for confirmation, starts the campaign and shows the progress of its bookings. The campaign runs in sendquota: ending this command does not stop it. sendquota campaign pause ID does.

  sendquota campaign run winter.csv --name "Winter sale" --send-at 2026-12-01T09:00:00Z --on-conflict defer --message @message.json --simulate

docs/campaigns.md explains the file, the message, and the meaning of each outcome.

Exit status: 0 all recipients were sent it (or have a place; or, with --simulate, would have), 1 some were not, or the command was interrupted, 2 a wrong command line, no API key, or a file that cannot be read, 3 the API refused it or did not answer, the start was not confirmed, or the result cannot be printed.`
}

func (c runCampaign) Run() error {
	message, err := c.message()
	if err != nil {
		return exitStatus{err, exitUsage}
	}
	in := os.Stdin
	if c.File != "-" {
		if in, err = os.Open(c.File); err != nil {
			return exitStatus{err, exitUsage}
		}
		defer in.Close()
	}
	if info, err := in.Stat(); err == nil && info.IsDir() {
		return exitStatus{fmt.Errorf("%s is a folder; name a file with recipients", c.File), exitUsage}
	}
	return c.withAPI("campaigns:write", func(ctx context.Context, api *client.Client) error {
		draft, err := api.Campaigns.Create(ctx, "", client.NewCampaign{
			Name: c.name(), Channel: c.Channel, Category: c.Category, Message: message, SendAt: c.SendAt.Time, LocalTime: c.LocalTime, TimeZone: c.TimeZone,
			Spread: c.Spread, OnConflict: c.OnConflict, Latest: c.Latest.Time, ExpiresAfter: c.ExpiresAfter,
		})
		if err != nil {
			return exitStatus{refusal(err), exitRefused}
		}
		r := campaignRun{runCampaign: c, api: api, draft: draft}
		return r.run(ctx, in)
	})
}

// message parses the message, which must be an object of JSON.
func (c runCampaign) message() (client.Message, error) {
	text, from := []byte(c.Message), "--message"
	if file, ok := strings.CutPrefix(c.Message, "@"); ok {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("--message: %w", err)
		}
		from, text = file, bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	m := client.Message{}
	if err := json.Unmarshal(text, &m); err != nil || m == nil {
		return nil, fmt.Errorf(`%s must be an object of JSON, such as {"title": "Hi {{ first_name }}", "body": "…"}: %w`, from, err)
	}
	return m, nil
}

func (c runCampaign) name() string {
	if c.Name == "" && c.File != "-" {
		return strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File))
	}
	return c.Name
}

// campaignRun is a campaign on its way from a draft to its end.
type campaignRun struct {
	runCampaign
	api      *client.Client
	draft    client.Campaign
	audience client.Audience
}

// run uploads, simulates or starts, and follows. It removes a draft that is not started.
func (r *campaignRun) run(ctx context.Context, in *os.File) error {
	started := false
	defer func() {
		if !started {
			r.discard()
		}
	}()
	if err := r.upload(ctx, in); err != nil {
		return r.stopped(ctx, err, "nothing was booked, and the draft is removed")
	}
	if !r.JSON {
		printAudience(os.Stderr, r.audience)
	}
	if r.Simulate {
		return r.simulate(ctx)
	}
	if !r.confirmed(ctx) {
		return exitStatus{errors.New("not started: nothing was booked, and the draft is removed"), exitRefused}
	}
	started = true // possibly, from here on
	p, err := r.api.Campaigns.Start(ctx, r.draft.ID)
	var state *client.CampaignState
	var problem *client.Problem
	if err != nil {
		// After a refusal there is a draft; without an answer, it may have been started.
		started = !errors.As(err, &problem) || errors.As(err, &state) && state.Campaign.Status != client.CampaignStatusDraft
		if started {
			return r.stopped(ctx, err, r.goesOn("may have been started"))
		}
		return r.stopped(ctx, err, "nothing was booked, and the draft is removed")
	}
	if p, err = r.follow(ctx, p); err != nil {
		return r.stopped(ctx, err, r.goesOn("goes on"))
	}
	return r.report(p)
}

// discard removes the draft, and ignores errors.
func (r *campaignRun) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = r.api.Campaigns.Delete(ctx, r.draft.ID)
}

// stopped returns the error of an incomplete run, with the current state.
func (r *campaignRun) stopped(ctx context.Context, err error, now string) error {
	if ctx.Err() != nil {
		return exitStatus{fmt.Errorf("interrupted: %s", now), exitNotAll}
	}
	return exitStatus{fmt.Errorf("%w\n%s", refusal(err), now), exitRefused}
}

func (r *campaignRun) goesOn(how string) string {
	return fmt.Sprintf("the campaign %s\n  its progress:  sendquota campaign show %[2]s\n  to pause it:   sendquota campaign pause %[2]s\n  to end it:     sendquota campaign cancel %[2]s", how, r.draft.ID)
}

// upload sends the file, with a progress bar on a terminal.
func (r *campaignRun) upload(ctx context.Context, in *os.File) error {
	size := int64(-1)
	if info, err := in.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	}
	bar := newBytesBar(size, "uploading")
	defer bar.Finish()
	var err error
	r.audience, err = r.api.Campaigns.PutAudience(ctx, r.draft.ID, watchedReader(in, bar, size), chosenFormat(r.Format, r.File))
	return err
}

// chosenFormat returns the format that --format gives, or the one of the file's name.
func chosenFormat(given, file string) client.Format {
	switch given {
	case "csv":
		return client.CSV
	case "ndjson":
		return client.NDJSON
	}
	return formatOf(file)
}

// formatOf returns the format of a file by its name.
func formatOf(file string) client.Format {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".ndjson", ".jsonl", ".json":
		return client.NDJSON
	}
	return client.CSV
}

func (r *campaignRun) simulate(ctx context.Context) error {
	found, err := r.api.Campaigns.Simulate(ctx, r.draft.ID)
	if err != nil {
		return r.stopped(ctx, err, "nothing was booked, and the draft is removed")
	}
	if err := printSimulation(os.Stdout, found, r.JSON); err != nil {
		return err
	}
	return r.left(found.Refused+found.OptedOut+found.Invalid, found.Recipients, "would not be sent it")
}

// confirmed asks whether to start, if standard input and error are terminals.
func (r *campaignRun) confirmed(ctx context.Context) bool {
	if r.Yes || r.JSON || !watched(os.Stdin) || !watched(os.Stderr) {
		return true
	}
	fmt.Fprintf(os.Stderr, "Start %q for %d recipients, to be sent at %s? [y/N] ", r.draft.Name, r.audience.Accepted, sendTime(r.draft))
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return false
	case line := <-answer:
		return line == "y" || line == "yes"
	}
}

// report prints the campaign at the end of the command.
func (r *campaignRun) report(p client.Campaign) error {
	if err := printCampaign(os.Stdout, p, r.JSON); err != nil {
		return fmt.Errorf("%s: %w", r.goesOn("goes on, and cannot be printed"), err)
	}
	return r.left(notSent(p.Progress), p.Audience, "are not sent it")
}

// left returns an error if recipients are left out, by the campaign or because their lines were rejected.
func (r *campaignRun) left(out, of int64, how string) error {
	if out += r.audience.Rejected; out == 0 {
		return nil
	}
	return exitStatus{fmt.Errorf("%d of %d %s", out, of+r.audience.Rejected, how), exitNotAll}
}

// watchedReader returns a reader of the file that moves a bar. It can seek if the size is known.
func watchedReader(in *os.File, bar io.Writer, size int64) io.Reader {
	through := io.TeeReader(in, bar)
	if size < 0 {
		return through
	}
	return struct {
		io.Reader
		io.Seeker
	}{through, in}
}
