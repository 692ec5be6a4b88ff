package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
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
	invalidRequest   = kind{"invalid-request", 422, "Invalid request", "Something is wrong with the request; errors lists every fault. With status 400 the body is not JSON at all."}
	unauthorized     = kind{"unauthorized", 401, "Unauthorized", "There is no API key, or it is unknown or expired."}
	forbidden        = kind{"forbidden", 403, "Forbidden", "The API key lacks the scope that is named."}
	notFound         = kind{"not-found", 404, "Not found", "There is no such thing, or it belongs to another tenant."}
	methodNotAllowed = kind{"method-not-allowed", 405, "Method not allowed", "The path exists, but not with this method; Allow lists those that do."}
	quotaExceeded    = kind{"quota-exceeded", 409, "Send quota exceeded", "The recipient has no place left at that send time. Repeating the request does not help; another send time does."}
	tenantCap        = kind{"tenant-cap-exceeded", 409, "Tenant cap exceeded", "The operator allows this tenant so many pending pushes, or so many recipients on a day, and they are used up. detail says what to do."}
	notCancelable    = kind{"not-cancelable", 409, "Not cancelable", "The push is being sent, or has ended otherwise."}
	notReschedulable = kind{"not-reschedulable", 409, "Not reschedulable", "The push is not waiting for its time any more."}
	keyReused        = kind{"idempotency-key-reused", 422, "Idempotency-Key reused", "The Idempotency-Key was used for another request."}
	batchRefused     = kind{"batch-refused", 424, "Batch refused", "Only in the results of an atomic batch: this push had a place, but others had none."}
	tooManyWebhooks  = kind{"too-many-webhooks", 409, "Too many webhooks", "The tenant has as many webhooks as it may; delete one first."}
	webhookDisabled  = kind{"webhook-disabled", 409, "Webhook disabled", "The webhook is switched off, so that nothing is sent to it; enable it first."}
	tooLarge         = kind{"too-large", 413, "Body too large", "The body has more than 64 KiB, or 4 MiB for a batch."}
	unsupportedMedia = kind{"unsupported-media-type", 415, "Unsupported media type", "The body is not declared as application/json."}
	rateLimited      = kind{"rate-limited", 429, "Too many requests", "The API key or the client's address has used up a speed limit of the API, which the detail names, or the tenant has as many requests under way as it may, or, below /v1/limits, as many that cost Redis much. Retry-After says when to try again; RateLimit and RateLimit-Policy, which other answers bear as well, how the limits stand."}
	unavailable      = kind{"unavailable", 503, "Unavailable", "The database, or for speed limits Redis, did not answer in time. Retry-After says when to try again."}
	internal         = kind{"internal", 500, "Internal error", "Something unforeseen happened; the log has more under the X-Request-Id."}
)

// kinds lists all problems.
func kinds() []kind {
	return []kind{
		invalidRequest, unauthorized, forbidden, notFound, methodNotAllowed, quotaExceeded, tenantCap, notCancelable,
		notReschedulable, keyReused, batchRefused, tooManyWebhooks, webhookDisabled, tooLarge, unsupportedMedia, rateLimited, unavailable, internal,
	}
}

// Problem is an answer of RFC 9457. The types that embed it add members.
type Problem struct {
	Type   string `json:"type" doc:"Which problem this is; the name behind urn:sendquota:problem: never changes."`
	Title  string `json:"title" doc:"The same, to be read."`
	Status int    `json:"status" doc:"The HTTP status."`
	Detail string `json:"detail,omitempty" doc:"What happened here."`

	header http.Header
}

// problem is how to send any of the problem types.
func (p *Problem) problem() *Problem { return p }

type problemer interface{ problem() *Problem }

type invalidProblem struct {
	Problem
	Errors invalid.FieldErrors `json:"errors" doc:"Every fault of the request."`
}

// capProblem is the answer to a push for which the tenant has no place.
type capProblem struct {
	Problem
	Cap   string  `json:"cap" enum:"pending_pushes,recipients_per_day" doc:"Pushes that are scheduled or being sent, or distinct recipients of pushes whose send time lies on one day of UTC."`
	Limit int     `json:"limit" doc:"What the operator allows."`
	Used  int     `json:"used" doc:"How much is used. Counting stops one above the limit."`
	Day   *string `json:"day,omitempty" format:"date" doc:"The day that is full, of recipients_per_day."`
}

func capProblemOf(c *store.Capped) *capProblem {
	p := &capProblem{Problem: tenantCap.because(c.Error()), Cap: c.Cap, Limit: c.Limit, Used: c.Used}
	if c.Cap == store.RecipientsPerDay {
		day := c.Day.Begin().Format(time.DateOnly)
		p.Day = &day
	}
	return p
}

type pushProblem struct {
	Problem
	Push *pushView `json:"push" doc:"The push as it stands."`
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

// problemOf turns an error into an answer. It is false if nobody foresaw the
// error: then its text is for the log only.
func problemOf(err error) (p problemer, foreseen bool) {
	var (
		bad     *badRequest
		batch   *refusedBatch
		wrong   invalid.FieldErrors
		noPlace *schedule.Refusal
		capped  *store.Capped
		other   *refusal
		about   *aboutPush
		full    *bulkhead.FullError
	)
	errors.As(err, &about)
	switch {
	case errors.As(err, &bad):
		return bad.problem(), true
	case errors.As(err, &batch):
		return batch.problem(), true
	case errors.As(err, &wrong):
		f := form{}
		f.blame(wrong)
		return problemOf(f.under("body"))
	case errors.As(err, &noPlace):
		return quotaProblemOf(noPlace), true
	case errors.As(err, &capped):
		return capProblemOf(capped), true
	case errors.As(err, &other):
		p := other.kind.because(other.detail)
		p.header = other.header
		return &p, true
	case errors.As(err, &full):
		return fullProblemOf(full), true
	case errors.Is(err, push.ErrNotCancelable) && about != nil:
		return about.problem(notCancelable, "the push is %s and can not be canceled any more"), true
	case errors.Is(err, push.ErrNotReschedulable) && about != nil:
		return about.problem(notReschedulable, "the push is %s and can not be rescheduled any more"), true
	}
	return plainProblemOf(err)
}

const repeatable = "whether anything was changed is not known, and a request with an Idempotency-Key can be repeated safely"

// fullProblemOf is the answer to a request for which there was no room: because of the
// tenant's own requests, or of all.
func fullProblemOf(full *bulkhead.FullError) problemer {
	p := unavailable.because("too many requests are under way; " + repeatable)
	if full.Own {
		p = rateLimited.because("the tenant has as many requests under way as it may, or as large ones; try again when some have ended")
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
		{push.ErrNotFound, notFound, "there is no such push"},
		{push.ErrTooManyWebhooks, tooManyWebhooks, "the tenant has as many webhooks as it may; delete one first"},
		{push.ErrWebhookOff, webhookDisabled, "the webhook is switched off, so that nothing is sent to it; enable it first"},
		{schedule.ErrOthersRefused, batchRefused, schedule.ErrOthersRefused.Error()},
		{push.ErrUnavailable, unavailable, "the database did not answer in time; " + repeatable},
		{ratelimit.ErrBusy, rateLimited, "the tenant's other requests below /v1/limits take all of Redis' time that one tenant may have at once; nothing was charged; try again in a moment, with fewer requests at the same time"},
		{ratelimit.ErrUnavailable, unavailable, "Redis did not answer in time, without which there is no decision about speed limits; whether anything was charged, given back or reset is not known"},
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
	p := internal.because("something unforeseen happened; please report the X-Request-Id")
	return &p, false
}

func (e *badRequest) problem() problemer {
	n := len(e.list) + e.more
	detail := fmt.Sprintf("the request has %d faults", n)
	if n == 1 {
		detail = e.list[0].Field + " " + e.list[0].Message
	}
	if e.more > 0 {
		detail += fmt.Sprintf("; these are the first %d", len(e.list))
	}
	p := &invalidProblem{Problem: invalidRequest.because(detail), Errors: e.list}
	if e.malformed {
		p.Status = http.StatusBadRequest
	}
	return p
}

func (e *aboutPush) problem(k kind, format string) problemer {
	return &pushProblem{Problem: k.because(fmt.Sprintf(format, e.push.Status)), Push: viewOf(e.push)}
}
