package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// Kind is a type of problem in the documentation.
type Kind struct {
	Name   string // urn:sendquota:problem:<Name>
	Status int
	Title  string
	When   string
}

// NewKind returns a type of problem.
func NewKind(name string, status int, title, when string) Kind {
	return Kind{name, status, title, when}
}

// The problems that every API answers with. Clients know them by their names.
var (
	InvalidRequest   = Kind{"invalid-request", 422, "Invalid request", "The request is invalid; errors lists every error. With status 400 the body is not JSON."}
	Unauthorized     = Kind{"unauthorized", 401, "Unauthorized", "There is no API key, or it is unknown, expired or revoked."}
	Forbidden        = Kind{"forbidden", 403, "Forbidden", "The API key lacks the scope that scope names."}
	NotFound         = Kind{"not-found", 404, "Not found", "The resource does not exist, or belongs to another tenant."}
	MethodNotAllowed = Kind{"method-not-allowed", 405, "Method not allowed", "The path does not support this method; Allow lists the methods that it supports."}
	KeyReused        = Kind{"idempotency-key-reused", 422, "Idempotency-Key reused", "The Idempotency-Key was used for another request."}
	StaleVersion     = Kind{"stale-version", 412, "Stale version", "The resource was changed after the version in If-Match; detail has the time of that change. Nothing was changed."}
	NotAcceptable    = Kind{"not-acceptable", 406, "Not acceptable", "The response is not available in a media type that Accept lists."}
	TooLarge         = Kind{"too-large", 413, "Body too large", "The body has more than 64 KiB, or 1 MiB for a campaign, or 4 MiB for a batch."}
	UnsupportedMedia = Kind{"unsupported-media-type", 415, "Unsupported media type", "The body is not declared as application/json, or has a Content-Encoding; Accept-Encoding then lists the accepted ones."}
	RateLimited      = Kind{"rate-limited", 429, "Too many requests", "The API key or the client's address has used up a rate limit, which detail names, or the tenant has too many requests in progress. Retry-After is the delay before a retry. RateLimit and RateLimit-Policy describe the limits; other responses carry them, too."}
	Unavailable      = Kind{"unavailable", 503, "Unavailable", "The database, or for speed limits Redis, did not answer in time. Retry-After is the delay before a retry."}
	Internal         = Kind{"internal", 500, "Internal error", "An unexpected error; the log has the details under the X-Request-Id."}
)

// Problem is an answer of RFC 9457. The types that embed it add members.
type Problem struct {
	Type   string `json:"type" doc:"The type of problem; the name after urn:sendquota:problem: never changes."`
	Title  string `json:"title" doc:"The type in words."`
	Status int    `json:"status" doc:"The HTTP status."`
	Detail string `json:"detail,omitempty" doc:"What happened."`

	header http.Header
}

// Base returns the members that all problems have.
func (p *Problem) Base() *Problem { return p }

// Problemer is a problem, with or without members of its own.
type Problemer interface{ Base() *Problem }

// MediaProblem is the media type of problems.
const MediaProblem = "application/problem+json"

type forbiddenProblem struct {
	Problem
	Scope string `json:"scope" doc:"A scope that the caller lacks. If several are missing, detail names the others."`
}

func scopeProblemOf(e *push.ScopeError) *forbiddenProblem {
	return &forbiddenProblem{Forbidden.Because(e.Detail), e.Scope}
}

// Because returns a problem of this kind.
func (k Kind) Because(detail string) Problem {
	return Problem{Type: "urn:sendquota:problem:" + k.Name, Title: k.Title, Status: k.Status, Detail: detail}
}

// Refusal is an error that is an answer already.
type Refusal struct {
	Kind   Kind
	Detail string
	header http.Header
}

func (e *Refusal) Error() string { return e.Kind.Name + ": " + e.Detail }

// refuse returns an error that is answered with a problem.
func refuse(k Kind, detail string) error { return &Refusal{Kind: k, Detail: detail} }

// LimitedFor returns the refusal of a request that may be repeated after a wait.
func LimitedFor(detail string, wait time.Duration) *Problem {
	after := strconv.FormatInt(max(Ceil(wait, time.Second), 1), 10)
	p := RateLimited.Because(detail + "; try again after " + after + " s")
	p.header = http.Header{"Retry-After": {after}}
	return &p
}

// Policy adds the limit that was used up, of some requests in a time span, to a problem of [LimitedFor].
func (p *Problem) Policy(name string, requests int, per time.Duration) *Problem {
	p.header.Set("RateLimit-Policy", fmt.Sprintf(`"%s";q=%d;w=%d`, name, requests, Ceil(per, time.Second)))
	p.header.Set("RateLimit", fmt.Sprintf(`"%s";r=0;t=%s`, name, p.header.Get("Retry-After")))
	return p
}

// unexpected returns the answer to an unexpected error.
func unexpected() Problemer {
	p := Internal.Because("an unexpected error; please report the X-Request-Id")
	return &p
}

const repeatable = "the request may or may not have taken effect; a request with an Idempotency-Key can be repeated safely"

// fullProblemOf returns the answer to a request that found no room, because of the tenant's own requests or of all requests.
func fullProblemOf(full *bulkhead.FullError) Problemer {
	p := Unavailable.Because("too many requests are under way; " + repeatable)
	if full.Own {
		p = RateLimited.Because("the tenant has too many requests, or too large ones, under way; try again when some have ended")
	}
	p.header = http.Header{"Retry-After": {"1"}}
	return &p
}

// Plain maps an error without data to a problem.
type Plain struct {
	err    error
	kind   Kind
	detail string
}

// PlainOf returns a row that maps an error without data to a problem.
func PlainOf(err error, kind Kind, detail string) Plain { return Plain{err, kind, detail} }

var plainProblems = []Plain{
	{push.ErrKeyReused, KeyReused, "this Idempotency-Key was used before, with another body or on another path"},
	{push.ErrUnavailable, Unavailable, "the database did not answer in time; " + repeatable},
	{context.DeadlineExceeded, Unavailable, "the request took too long; " + repeatable},
	{context.Canceled, Unavailable, "the caller went away"},
}

// PlainProblem returns the problem of the first error in known that err is, or nil.
func PlainProblem(err error, known []Plain) Problemer {
	for _, one := range known {
		if errors.Is(err, one.err) {
			p := one.kind.Because(one.detail)
			if one.kind == Unavailable || one.kind == RateLimited {
				p.header = http.Header{"Retry-After": {"1"}}
			}
			return &p
		}
	}
	return nil
}
