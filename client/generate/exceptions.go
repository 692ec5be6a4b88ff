package main

// byHand lists the operations with hand-written methods, and the reason.
var byHand = map[string]string{
	"get-channel":       "its settings are members of the answer, which depend on the type",
	"put-channel":       "its body has a schema for each type",
	"simulate-campaign": "it answers in two forms, and the lines of one end with another object",
}

// again lists the operations whose HTTP method does not decide whether the client repeats them: a POST that does nothing more
// the second time, and a DELETE that fails then.
var again = map[string]bool{
	"cancel-bulk-change":  true,
	"cancel-campaign":     true,
	"cancel-push":         true,
	"check-quota":         true,
	"create-pause":        true,
	"delete-channel":      true,
	"delete-pause":        false,
	"delete-user":         false,
	"enable-webhook":      true,
	"end-session":         false,
	"import-recipients":   true,
	"import-suppressions": true,
	"delete-suppression":  false,
	"pause-campaign":      true,
	"preview-campaign":    true,
	"reset-limits":        true,
	"resume-campaign":     true,
	"start-campaign":      true,
}

// trials maps the parameters of dry runs to the prefix of their methods.
var trials = map[string]string{"validate_only": "Validate", "forecast": "Forecast"}

// shortPages lists the lists of large items: their pages have the API's default size instead of the largest.
var shortPages = map[string]bool{"list-policy-versions": true}

// typedByHand maps schemas to hand-written types.
var typedByHand = map[string]string{"OwnChannel": "ChannelSettings"}

// refusals maps the document's problems to the types of the package.
var refusals = map[string][]string{
	"InvalidProblem":    {"Invalid"},
	"QuotaProblem":      {"QuotaExceeded", "QuietHours"},
	"OptOutProblem":     {"OptedOut"},
	"SuppressedProblem": {"Suppressed"},
	"CapProblem":        {"CapExceeded"},
	"ForbiddenProblem":  {"Forbidden"},
	"PushProblem":       {"PushState"},
	"GoneProblem":       {"PushGone"},
	"BatchProblem":      {"BatchRefused"},
	"CampaignProblem":   {"CampaignState"},
	"InUseProblem":      {"ChannelInUse"},
}
