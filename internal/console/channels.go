package console

import (
	"fmt"

	"github.com/sendquota/sendquota/client"
)

func (p *page) channels() error {
	report, err := p.api.Channels.List(p.ctx())
	if err != nil {
		return err
	}
	return p.show("settingschannels", "Channels", report)
}

// ChannelWords says how a channel stands.
func (p *page) ChannelWords(c client.Channel) string {
	switch c.State {
	case client.ChannelStateWorking:
		return "It works."
	case client.ChannelStateFailing:
		return failingWords(c)
	case client.ChannelStateRejecting:
		return rejectingWords(c)
	case client.ChannelStatePaused:
		return "Its provider asked for a pause: nothing is sent until that is over."
	case client.ChannelStateTrying:
		return "It comes back: after a pause a few attempts are made at a time."
	}
	return "No worker has told of it of late: is one running?"
}

// failingWords says whether a channel that fails pauses.
func failingWords(c client.Channel) string {
	if c.Until.IsZero() {
		return fmt.Sprintf("Its provider fails now and then: %s of %s attempts in the last five minutes. They are tried again.", number(c.LastFiveMinutes.Failed), number(c.LastFiveMinutes.Attempts))
	}
	return "Its provider is down: too many attempts in a row failed, and there are none until the pause is over."
}

// rejectingWords says how much of what is sent a channel's provider refuses.
func rejectingWords(c client.Channel) string {
	return fmt.Sprintf("Its provider refuses messages permanently: %s of %s in the last five minutes. The failed pushes name the reason.", number(c.LastFiveMinutes.Rejected), number(c.LastFiveMinutes.Attempts))
}

// testSend sends a message to oneself, as any other push: through the quota, at once.
func (p *page) testSend() error {
	one, failed := p.api.Pushes.Submit(p.ctx(), p.form("once"), client.NewPush{
		Recipient: p.form("recipient"), Channel: p.form("channel"), To: p.form("to"),
		Message: client.Message{"title": "Test of the channel " + p.form("channel"), "body": "This message was sent from the console to see whether it arrives."},
	})
	if failed == nil {
		return p.done(fmt.Sprintf("The test message to %s is on its way: load this page again to see what became of it.", one.Recipient), p.Link("/pushes/"+one.ID))
	}
	report, err := p.api.Channels.List(p.ctx())
	if err != nil {
		return err
	}
	return p.again(failed, "settingschannels", "Channels", report)
}
