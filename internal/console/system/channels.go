package system

import (
	"fmt"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

func showChannels(p *frame.Page) error {
	report, err := p.API.Channels.List(p.Context())
	if err != nil {
		return err
	}
	return p.Show("settingschannels", "Channels", report)
}

// settingsChannelWords describes the state of a channel.
func settingsChannelWords(c client.Channel) string {
	if c.PauseID != "" {
		return pausedWords
	}
	switch c.State {
	case client.ChannelStateWorking:
		return "Working normally."
	case client.ChannelStateFailing:
		return failingWords(c)
	case client.ChannelStateRejecting:
		return rejectingWords(c)
	case client.ChannelStatePaused:
		return "The provider asked for a pause. Nothing is sent until it ends."
	case client.ChannelStateTrying:
		return "Recovering: only a few attempts are made at a time after a pause."
	}
	return "No worker has reported recently. Check that one is running."
}

// failingWords describes a failing channel, which pauses if its provider is down.
func failingWords(c client.Channel) string {
	if c.Until.IsZero() {
		return fmt.Sprintf("The provider fails sometimes: %s of %s attempts in the last five minutes. They are retried.", frame.Number(c.LastFiveMinutes.Failed), frame.Number(c.LastFiveMinutes.Attempts))
	}
	return "The provider is down: too many attempts failed in a row. Sending resumes after the pause."
}

// rejectingWords describes the share of messages that the provider refuses.
func rejectingWords(c client.Channel) string {
	return fmt.Sprintf("The provider refuses messages permanently: %s of %s in the last five minutes. The failed messages name the reason.", frame.Number(c.LastFiveMinutes.Rejected), frame.Number(c.LastFiveMinutes.Attempts))
}

// testSend sends a message to oneself, as any other push: through the quota, at once.
func testSend(p *frame.Page) error {
	one, failed := p.API.Pushes.Submit(p.Context(), p.Field("once"), client.NewPush{
		Recipient: p.Field("recipient"), Channel: p.Field("channel"), To: p.Field("to"),
		Message: client.Message{"title": "Test of the channel " + p.Field("channel"), "body": "This message was sent from the console to see whether it arrives."},
	})
	if failed == nil {
		return p.Done(fmt.Sprintf("Test message to %s sent. Reload this page to see the result.", one.Recipient), p.Link("/pushes/"+one.ID))
	}
	report, err := p.API.Channels.List(p.Context())
	if err != nil {
		return err
	}
	return p.ShowAgain(failed, "settingschannels", "Channels", report)
}
