package httpapi

// kinds lists all types of problems, in the order of the documentation.
func kinds() []kind {
	return []kind{
		invalidRequest, unauthorized, forbidden, notFound, methodNotAllowed, quotaExceeded, quietHours, optedOut, tenantCap, notCancelable,
		notReschedulable, notRetryable, keyReused, pushGone, batchRefused, tooManyWebhooks, webhookDisabled, notConfigured, tooManySchedules,
		tooManyCampaigns, tooManyBulk, campaignState, tooManyKeys, notRotatable, ownKey, tooManyUsers, emailTaken, lastAdmin, userDisabled,
		userExternal, stalePolicy, staleVersion, notAcceptable, tooLarge, unsupportedMedia, rateLimited, unavailable, internal,
	}
}

// problemOf returns the problem for an error of a resource, or nil.
func problemOf(err error) problemer {
	for _, of := range []func(error) problemer{
		pushProblemOf, webhookProblemOf, policyProblemOf, scheduleProblemOf, campaignProblemOf, accountProblemOf, limitProblemOf,
	} {
		if p := of(err); p != nil {
			return p
		}
	}
	return nil
}

// exampleOf returns an example of a kind of problem with its members, or nil.
func exampleOf(k kind) problemer {
	for _, of := range []func(kind) problemer{pushExample, campaignExample} {
		if p := of(k); p != nil {
			return p
		}
	}
	return nil
}
