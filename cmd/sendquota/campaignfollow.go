package main

import (
	"context"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/sendquota/sendquota/client"
)

// followPause is the pause between two requests for a campaign.
const followPause = 500 * time.Millisecond

// follow waits until each recipient has a place or was refused one or, with --wait, until the campaign has ended. It shows the progress.
func (r *campaignRun) follow(ctx context.Context, p client.Campaign) (client.Campaign, error) {
	booking := newCountBar(p.Audience, "booking")
	for p.Status == client.CampaignStatusStarting || r.Wait && p.Status != client.CampaignStatusRunning && !over(p) {
		_ = booking.Set64(p.Progress.Audience - p.Progress.Pending)
		var err error
		if p, err = r.poll(ctx); err != nil {
			return p, err
		}
	}
	_ = booking.Finish()
	if !r.Wait {
		return p, nil
	}
	sending := newCountBar(p.Audience-unbooked(p.Progress), "sending")
	for !over(p) {
		_ = sending.Set64(p.Progress.Sent + notSent(p.Progress) - unbooked(p.Progress))
		var err error
		if p, err = r.poll(ctx); err != nil {
			return p, err
		}
	}
	_ = sending.Finish()
	return p, nil
}

// unbooked counts the recipients without a place. They are sent nothing.
func unbooked(p client.Progress) int64 { return p.Refused + p.OptedOut + p.Invalid }

// over reports whether a campaign has ended.
func over(p client.Campaign) bool {
	return p.Status == client.CampaignStatusFinished || p.Status == client.CampaignStatusCanceled
}

// poll reads the campaign after a pause.
func (r *campaignRun) poll(ctx context.Context) (client.Campaign, error) {
	select {
	case <-ctx.Done():
		return client.Campaign{}, ctx.Err()
	case <-time.After(followPause):
	}
	return r.api.Campaigns.Get(ctx, r.draft.ID)
}

// newBytesBar returns a progress bar of bytes, shown on terminals only. A size of -1 is an unknown one.
func newBytesBar(size int64, doing string) *progressbar.ProgressBar {
	return newBar(size, doing, progressbar.OptionShowBytes(true))
}

// newCountBar returns a progress bar of recipients, shown on terminals only.
func newCountBar(count int64, doing string) *progressbar.ProgressBar {
	return newBar(count, doing, progressbar.OptionShowCount())
}

func newBar(of int64, doing string, shown progressbar.Option) *progressbar.ProgressBar {
	return progressbar.NewOptions64(of, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetVisibility(watched(os.Stderr)), shown,
		progressbar.OptionSetDescription(doing), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
