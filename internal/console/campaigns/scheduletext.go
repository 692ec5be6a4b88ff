package campaigns

import (
	"slices"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// checkText shows the form of a schedule again, with the size of its text.
func checkText(p *frame.Page, s client.NewSchedule) error {
	view := patterns(p)
	if s.Campaign != "" {
		view.Written = "The campaign has the message; its page shows the size of the text."
		return p.Show("schedulenew", "New schedule", view)
	}
	report, err := p.API.Channels.List(p.Context())
	if err != nil {
		return p.ShowAgain(err, "schedulenew", "New schedule", view)
	}
	at := slices.IndexFunc(report.Channels, func(c client.Channel) bool {
		return c.Name == s.Push.Channel || c.Default && s.Push.Channel == ""
	})
	switch {
	case at < 0:
		view.Written = "There is no channel " + s.Push.Channel + "."
	case report.Channels[at].Type != client.ChannelTypeSms:
		view.Written = "The channel " + report.Channels[at].Name + " sends no text messages, so the text has no segments."
	default:
		view.Written = "As it is written here, the text has " + frame.BodyWords(s.Push.Message) + "."
	}
	return p.Show("schedulenew", "New schedule", view)
}
