package frame

import (
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// CampaignName returns the name of a campaign for pages.
func CampaignName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "Campaign without a name"
	}
	return c.Name
}

// QuotedName returns the name of a campaign for use in a sentence.
func QuotedName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "the campaign without a name"
	}
	return "“" + c.Name + "”"
}

// CampaignChoice returns the name of a campaign in a select. A campaign without a name shows when it was created.
func (s *Times) CampaignChoice(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return CampaignName(c) + ", created " + s.PlainTime(c.CreatedAt.Truncate(time.Second))
	}
	return c.Name
}

// PhaseWords names a phase.
func PhaseWords(phase client.CampaignPhase) string {
	return strings.ReplaceAll(string(phase), "_", " ")
}
