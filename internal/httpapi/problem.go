package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/seal"
)

// kind is one type of problem, as the documentation lists it.
type kind struct {
	Name   string // urn:sendquota:problem:<Name>
	Status int
	Title  string
	When   string
}

// The problems that this API answers with. Clients know them by their names.
var (
	invalidRequest   = kind{"invalid-request", 422, "Invalid request", "The request is invalid; errors lists every error. With status 400 the body is not JSON."}
	unauthorized     = kind{"unauthorized", 401, "Unauthorized", "There is no API key, or it is unknown or expired."}
	forbidden        = kind{"forbidden", 403, "Forbidden", "The API key lacks the scope that scope names."}
	notFound         = kind{"not-found", 404, "Not found", "The resource does not exist, or belongs to another tenant."}
	methodNotAllowed = kind{"method-not-allowed", 405, "Method not allowed", "The path does not support this method; Allow lists the methods that it supports."}
	quotaExceeded    = kind{"quota-exceeded", 409, "Send quota exceeded", "The recipient's quota has no place at the requested send time. Repeating the request does not help; another send time does."}
	quietHours       = kind{"quiet-hours", 409, "Quiet hours", "The send time lies in quiet hours of the recipient. If a rule has no place left either, the problem is quota-exceeded, and violations lists both."}
	optedOut         = kind{"opted-out", 409, "Opted out", "The recipient has opted out of this channel, of this category, or of everything; opted_out lists which."}
	tenantCap        = kind{"tenant-cap-exceeded", 409, "Tenant cap exceeded", "The tenant has reached the operator's cap on pending pushes, on recipients per day, or on bytes of audiences. detail explains what to do."}
	notCancelable    = kind{"not-cancelable", 409, "Not cancelable", "The push is being sent, or has ended."}
	notReschedulable = kind{"not-reschedulable", 409, "Not reschedulable", "The push no longer waits for its send time."}
	notRetryable     = kind{"not-retryable", 409, "Not retryable", "The push has neither failed nor expired: it was sent or canceled, or may still be sent."}
	keyReused        = kind{"idempotency-key-reused", 422, "Idempotency-Key reused", "The Idempotency-Key was used for another request."}
	pushGone         = kind{"push-gone", 410, "Push gone", "The Idempotency-Key created a push in the last 30 days, which has ended and is no longer stored. push_id names it; nothing was booked."}
	batchRefused     = kind{"batch-refused", 424, "Batch refused", "Only in the results of an atomic batch: this push has a place, but another one does not."}
	tooManyWebhooks  = kind{"too-many-webhooks", 409, "Too many webhooks", "The tenant has the maximum number of webhooks; delete one first."}
	webhookDisabled  = kind{"webhook-disabled", 409, "Webhook disabled", "The webhook is disabled; enable it first."}
	notConfigured    = kind{"not-configured", 422, "Not configured", "The installation lacks a setting that the operation needs; detail names it. Only the operator can set it. Until then, repeating the request does not help."}
	stalePolicy      = kind{"stale-policy", 412, "Stale policy", "The version in If-Match is no longer in force; detail names the version that is."}
	staleVersion     = kind{"stale-version", 412, "Stale version", "The resource was changed after the version in If-Match; detail has the time of that change. Nothing was changed."}
	tooManySchedules = kind{"too-many-schedules", 409, "Too many schedules", "The tenant has the maximum number of schedules; delete one first."}
	tooManyCampaigns = kind{"too-many-campaigns", 409, "Too many campaigns", "The tenant has the maximum number of campaigns that have not ended; delete a draft first."}
	tooManyBulk      = kind{"too-many-bulk-changes", 409, "Too many bulk changes", "The tenant has the maximum number of bulk changes under way; wait until one has ended, or stop one."}
	campaignState    = kind{"campaign-state", 409, "Campaign state", "The campaign's status does not allow the operation, or a campaign to be deleted is the pattern of schedules; campaign is its current state."}
	tooManyKeys      = kind{"too-many-keys", 409, "Too many keys", "The tenant has the maximum number of live API keys; revoke one first."}
	notRotatable     = kind{"not-rotatable", 409, "Not rotatable", "The API key has ended, or is one of the two live keys of an earlier rotation; detail names the reason."}
	ownKey           = kind{"own-key", 409, "Own key", "The API key of the request would revoke itself; self=true allows that."}
	tooManyUsers     = kind{"too-many-users", 409, "Too many users", "The tenant has the maximum number of users; delete one first."}
	emailTaken       = kind{"email-taken", 409, "Email taken", "Another user of the tenant signs in with this email."}
	lastAdmin        = kind{"last-admin", 409, "Last admin", "The user is the only admin who is not disabled; make another admin first."}
	userDisabled     = kind{"user-disabled", 409, "User disabled", "The user is disabled; enable the user first."}
	userExternal     = kind{"user-external", 409, "User external", "The user signs in through the OIDC provider, and can have neither links nor a password unless the operator allows them."}
	notAcceptable    = kind{"not-acceptable", 406, "Not acceptable", "The response is not available in a media type that Accept lists."}
	tooLarge         = kind{"too-large", 413, "Body too large", "The body has more than 64 KiB, or 1 MiB for a campaign, or 4 MiB for a batch."}
	unsupportedMedia = kind{"unsupported-media-type", 415, "Unsupported media type", "The body is not declared as application/json, or has a Content-Encoding; Accept-Encoding then lists the accepted ones."}
	rateLimited      = kind{"rate-limited", 429, "Too many requests", "The API key or the client's address has used up a rate limit, which detail names, or the tenant has too many requests in progress. Retry-After is the delay before a retry. RateLimit and RateLimit-Policy describe the limits; other responses carry them, too."}
	unavailable      = kind{"unavailable", 503, "Unavailable", "The database, or for speed limits Redis, did not answer in time. Retry-After is the delay before a retry."}
	internal         = kind{"internal", 500, "Internal error", "An unexpected error; the log has the details under the X-Request-Id."}
)

// kinds lists all problems.
func kinds() []kind {
	return []kind{
		invalidRequest, unauthorized, forbidden, notFound, methodNotAllowed, quotaExceeded, quietHours, optedOut, tenantCap, notCancelable,
		notReschedulable, notRetryable, keyReused, pushGone, batchRefused, tooManyWebhooks, webhookDisabled, notConfigured, tooManySchedules, tooManyCampaigns, tooManyBulk, campaignState, tooManyKeys, notRotatable, ownKey, tooManyUsers, emailTaken, lastAdmin, userDisabled, userExternal, stalePolicy, staleVersion, notAcceptable, tooLarge, unsupportedMedia, rateLimited, unavailable, internal,
	}
}

// Problem is an answer of RFC 9457. The types that embed it add members.
type Problem struct {
	Type   string `json:"type" doc:"The type of problem; the name after urn:sendquota:problem: never changes."`
	Title  string `json:"title" doc:"The type in words."`
	Status int    `json:"status" doc:"The HTTP status."`
	Detail string `json:"detail,omitempty" doc:"What happened."`

	header http.Header
}

// problem is how to send any of the problem types.
func (p *Problem) problem() *Problem { return p }

type problemer interface{ problem() *Problem }

type invalidProblem struct {
	Problem
	Errors invalid.FieldErrors `json:"errors" doc:"Every error of the request."`
}

// capProblem is the answer to a push for which the tenant has no place.
type capProblem struct {
	Problem
	Cap   string  `json:"cap" enum:"pending_pushes,recipients_per_day,audience_bytes" doc:"Pushes that are scheduled or being sent; distinct recipients of pushes with a send time on one day of UTC; or bytes of the stored audiences."`
	Limit int     `json:"limit" doc:"The maximum that the operator has set."`
	Used  int     `json:"used" doc:"The current use. Counting stops one above the limit."`
	Day   *string `json:"day,omitempty" format:"date" doc:"For recipients_per_day: the day that is full."`
}

func capProblemOf(c *booking.Capped) *capProblem {
	p := &capProblem{Problem: tenantCap.because(c.Error()), Cap: c.Cap, Limit: c.Limit, Used: c.Used}
	if c.Cap == booking.RecipientsPerDay {
		day := c.Day.Begin().Format(time.DateOnly)
		p.Day = &day
	}
	return p
}

type pushProblem struct {
	Problem
	Push *pushView `json:"push" doc:"The current state of the push."`
}

type campaignProblem struct {
	Problem
	Campaign campaignView `json:"campaign" doc:"The current state of the campaign."`
}

type forbiddenProblem struct {
	Problem
	Scope string `json:"scope" doc:"A scope that the caller lacks. If several are missing, detail names the others."`
}

func scopeProblemOf(e *push.ScopeError) *forbiddenProblem {
	return &forbiddenProblem{forbidden.because(e.Detail), e.Scope}
}

type goneProblem struct {
	Problem
	PushID uuid.UUID `json:"push_id" format:"uuid" doc:"The push that the first request created."`
}

func goneProblemOf(gone *push.GoneError) *goneProblem {
	return &goneProblem{pushGone.because("an earlier request with this Idempotency-Key was accepted; its push has ended and is no longer stored"), gone.ID}
}

func (k kind) because(detail string) Problem {
	return Problem{Type: "urn:sendquota:problem:" + k.Name, Title: k.Title, Status: k.Status, Detail: detail}
}

// refusal is an error that is an answer already.
type refusal struct {
	kind   kind
	detail string
	header http.Header
}

func (e *refusal) Error() string { return e.kind.Name + ": " + e.detail }

// aboutPush is an error and the push that it is about.
type aboutPush struct {
	error
	push push.Push
}

func (e *aboutPush) Unwrap() error { return e.error }

// about is an error about a push, whose message the answer shows as others do.
func (c *call) about(err error, p push.Push) error {
	c.showMessage(&p)
	return &aboutPush{err, p}
}

// problemOf turns an error into an answer. It is false if nobody foresaw the error: then its text is for the log only.
func problemOf(err error) (p problemer, foreseen bool) {
	if noPlace, ok := errors.AsType[*schedule.Refusal](err); ok { // the usual one
		return quotaProblemOf(noPlace), true
	}
	var (
		bad      *badRequest
		batch    *refusedBatch
		wrong    invalid.FieldErrors
		capped   *booking.Capped
		unwanted *schedule.OptedOut
		other    *refusal
		scope    *push.ScopeError
		about    *aboutPush
		full     *bulkhead.FullError
		gone     *push.GoneError
		stale    *policy.StaleError
		outdated *push.StaleError
		state    *push.CampaignStateError
		replaced *push.ReplacedError
	)
	errors.As(err, &about)
	switch {
	case errors.As(err, &bad):
		return bad.problem(), true
	case errors.As(err, &batch):
		return batch.problem(), true
	case errors.As(err, &wrong):
		all := badRequest{}
		all.addAll("body", fieldErrors{list: wrong})
		return all.problem(), true
	case errors.As(err, &unwanted):
		return optOutProblemOf(unwanted), true
	case errors.As(err, &capped):
		return capProblemOf(capped), true
	case errors.As(err, &gone):
		return goneProblemOf(gone), true
	case errors.As(err, &stale):
		p := stalePolicy.because(stale.Error())
		return &p, true
	case errors.As(err, &outdated):
		p := staleVersion.because(outdated.Error())
		return &p, true
	case errors.As(err, &state):
		return &campaignProblem{campaignState.because(state.Detail), campaignViewOf(state.Campaign)}, true
	case errors.As(err, &replaced):
		p := notRotatable.because(replaced.Error())
		return &p, true
	case errors.As(err, &scope):
		return scopeProblemOf(scope), true
	case errors.As(err, &other):
		p := other.kind.because(other.detail)
		p.header = other.header
		return &p, true
	case errors.As(err, &full):
		return fullProblemOf(full), true
	case errors.Is(err, push.ErrNotCancelable) && about != nil:
		return about.problem(notCancelable, "the push is %s and cannot be canceled any more"), true
	case errors.Is(err, push.ErrNotReschedulable) && about != nil:
		return about.problem(notReschedulable, "the push is %s and cannot be rescheduled any more"), true
	case errors.Is(err, push.ErrNotRetryable) && about != nil:
		return about.problem(notRetryable, "the push is %s; only one that has failed or expired is retried"), true
	}
	if p := userProblem(err); p != nil {
		return p, true
	}
	return plainProblemOf(err)
}

const repeatable = "the request may or may not have taken effect; a request with an Idempotency-Key can be repeated safely"

// fullProblemOf is the answer to a request for which there was no room: because of the tenant's own requests, or of
// all.
func fullProblemOf(full *bulkhead.FullError) problemer {
	p := unavailable.because("too many requests are under way; " + repeatable)
	if full.Own {
		p = rateLimited.because("the tenant has too many requests, or too large ones, under way; try again when some have ended")
	}
	p.header = http.Header{"Retry-After": {"1"}}
	return &p
}

// plainProblemOf is problemOf for errors without data.
func plainProblemOf(err error) (problemer, bool) {
	for _, known := range []struct {
		err    error
		kind   kind
		detail string
	}{
		{push.ErrKeyReused, keyReused, "this Idempotency-Key was used before, with another body or on another path"},
		{push.ErrNotFound, notFound, "the push does not exist"},
		{push.ErrTooManyWebhooks, tooManyWebhooks, "the tenant has the maximum number of webhooks; delete one first"},
		{push.ErrTooManySchedules, tooManySchedules, "the tenant has the maximum number of schedules; delete one first"},
		{push.ErrTooManyCampaigns, tooManyCampaigns, "the tenant has the maximum number of campaigns that have not ended; delete a draft first"},
		{push.ErrTooManyBulkChanges, tooManyBulk, "the tenant has the maximum number of bulk changes under way; wait until one has ended, or stop one"},
		{push.ErrTooManyKeys, tooManyKeys, "the tenant has the maximum number of live API keys; revoke one first"},
		{push.ErrKeyOver, notRotatable, push.ErrKeyOver.Error()},
		{push.ErrWebhookOff, webhookDisabled, "the webhook is disabled; enable it first"},
		{seal.ErrNoKey, notConfigured, "secrets of webhooks cannot be sealed; the operator of this installation has to set " + seal.KeyVariable},
		{seal.ErrOtherKey, notConfigured, "the secret of this webhook is sealed with another key; the operator of this installation has to set " + seal.PreviousVariable},
		{schedule.ErrOthersRefused, batchRefused, schedule.ErrOthersRefused.Error()},
		{push.ErrUnavailable, unavailable, "the database did not answer in time; " + repeatable},
		{ratelimit.ErrBusy, rateLimited, "the tenant has too many requests below /v1/limits under way; nothing was charged; try again with fewer requests at the same time"},
		{ratelimit.ErrUnavailable, unavailable, "Redis did not answer in time, so the rate limits could not be decided; they may or may not have been charged, refunded or reset"},
		{context.DeadlineExceeded, unavailable, "the request took too long; " + repeatable},
		{context.Canceled, unavailable, "the caller went away"},
	} {
		if errors.Is(err, known.err) {
			p := known.kind.because(known.detail)
			if known.kind == unavailable || known.kind == rateLimited {
				p.header = http.Header{"Retry-After": {"1"}}
			}
			return &p, true
		}
	}
	p := internal.because("an unexpected error; please report the X-Request-Id")
	return &p, false
}

func (e *aboutPush) problem(k kind, format string) problemer {
	return &pushProblem{Problem: k.because(fmt.Sprintf(format, e.push.Status)), Push: viewOf(e.push)}
}
