package console

import (
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// campaignName is what a campaign is called on pages.
func campaignName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "Campaign without a name"
	}
	return c.Name
}

// quotedName is the name of a campaign within a sentence.
func quotedName(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return "the campaign without a name"
	}
	return "“" + c.Name + "”"
}

// CampaignChoice is what tells a campaign apart in a choice: its name, or when it was made.
func (s *times) CampaignChoice(c client.Campaign) string {
	if strings.TrimSpace(c.Name) == "" {
		return campaignName(c) + ", created " + s.PlainTime(c.CreatedAt.Truncate(time.Second))
	}
	return c.Name
}

// phaseWords names a phase.
func phaseWords(phase client.CampaignPhase) string {
	return strings.ReplaceAll(string(phase), "_", " ")
}
