package httpapi

import (
	"github.com/sendquota/sendquota/internal/httpapi/accounts"
	"github.com/sendquota/sendquota/internal/httpapi/campaigns"
	"github.com/sendquota/sendquota/internal/httpapi/channels"
	"github.com/sendquota/sendquota/internal/httpapi/limits"
	"github.com/sendquota/sendquota/internal/httpapi/pauses"
	"github.com/sendquota/sendquota/internal/httpapi/policies"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/httpapi/schedules"
	"github.com/sendquota/sendquota/internal/httpapi/webhooks"
	"github.com/sendquota/sendquota/internal/rest"
)

// kinds lists all types of problems, in the order of the documentation.
func kinds() []rest.Kind {
	return []rest.Kind{
		rest.InvalidRequest, rest.Unauthorized, rest.Forbidden, rest.NotFound, rest.MethodNotAllowed, pushes.QuotaExceeded, pushes.QuietHours, pushes.OptedOut, pushes.Suppressed, pushes.TenantCap, pushes.NotCancelable,
		pushes.NotReschedulable, pushes.NotRetryable, rest.KeyReused, pushes.PushGone, pushes.BatchRefused, webhooks.TooMany, webhooks.Disabled, webhooks.NotConfigured, channels.TooMany, channels.InUse, channels.Unready, schedules.TooMany,
		campaigns.TooMany, pushes.TooManyBulk, pauses.TooMany, campaigns.State, accounts.TooManyKeys, accounts.NotRotatable, accounts.OwnKey, accounts.TooManyUsers, accounts.EmailTaken, accounts.LastAdmin, accounts.UserDisabled,
		accounts.UserExternal, policies.Stale, rest.StaleVersion, rest.NotAcceptable, rest.TooLarge, rest.UnsupportedMedia, rest.RateLimited, rest.Unavailable, rest.Internal,
	}
}

// problemOf returns the problem for an error of a resource, or nil.
func problemOf(err error) rest.Problemer {
	for _, of := range []func(error) rest.Problemer{
		pushes.ProblemOf, webhooks.ProblemOf, policies.ProblemOf, schedules.ProblemOf, pauses.ProblemOf, campaigns.ProblemOf, accounts.ProblemOf, limits.ProblemOf, channels.ProblemOf,
	} {
		if p := of(err); p != nil {
			return p
		}
	}
	return nil
}

// exampleOf returns an example of a kind of problem with its members, or nil.
func exampleOf(k rest.Kind) rest.Problemer {
	for _, of := range []func(rest.Kind) rest.Problemer{pushes.ExampleOf, campaigns.ExampleOf, channels.ExampleOf} {
		if p := of(k); p != nil {
			return p
		}
	}
	return nil
}
