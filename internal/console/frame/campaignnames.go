package frame

import (
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// CampaignName is what a campaign is called on pages.
func CampaignName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "Campaign without a name"
	}
	return c.Name
}

// QuotedName is the name of a campaign within a sentence.
func QuotedName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "the campaign without a name"
	}
	return "“" + c.Name + "”"
}

// CampaignChoice is what tells a campaign apart in a choice: its name, or when it was made.
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
