package booking

import (
	"slices"

	"github.com/sendquota/sendquota/internal/push"
)

// CampaignCanceledReason is the last error of a push that was canceled with its campaign.
const CampaignCanceledReason = "campaign-canceled"

// OfCampaign returns the outcome of a decision for a recipient of a campaign: [push.OutcomeScheduled] if it is booked.
// Otherwise reason is the name of the API's problem or what is invalid, and rules are the rules or the cap in the way.
func (v *Decision) OfCampaign() (outcome push.CampaignOutcome, reason string, rules []string) {
	switch v.Outcome {
	case Booked, Replayed:
		return push.OutcomeScheduled, "", nil
	case OptedOut:
		return push.OutcomeOptedOut, OptedOutReason, nil
	case NoAddress:
		return push.OutcomeInvalid, "neither the line nor the recipient has an address for the channel", nil
	case NoPlace:
		reason = "quiet-hours"
		for i := range v.Quota.Violations {
			r := &v.Quota.Violations[i].Rule
			rules = append(rules, r.Name)
			if !r.Quiet {
				reason = "quota-exceeded"
			}
		}
		slices.Sort(rules)
		return push.OutcomeRefused, reason, slices.Compact(rules)
	default:
		return push.OutcomeRefused, "tenant-cap-exceeded", []string{v.Capped.Cap}
	}
}
