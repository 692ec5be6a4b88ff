package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Problem is an answer of the API that is no success (RFC 9457). Kinds with more to tell have types of their own, all of
// which are a Problem too: errors.As finds either.
type Problem struct {
	Type   string `json:"type"` // such as urn:sendquota:problem:not-found; it never changes
	Title  string `json:"title"`
	Status int    `json:"status"` // of HTTP
	Detail string `json:"detail"` // what happened; empty: Title says it all

	RequestID string `json:"-"` // finds the request in the log of the API
}

// problemPrefix stands before the name in the type of each problem.
const problemPrefix = "urn:sendquota:problem:"

// Name is the kind of the problem: the last part of its type, such as not-found.
func (p *Problem) Name() string { return strings.TrimPrefix(p.Type, problemPrefix) }

// Error returns the detail of the problem, or else its title.
func (p *Problem) Error() string { return "sendquota: " + cmp.Or(p.Detail, p.Title) }

// Invalid is a request with faults (invalid-request).
type Invalid struct {
	Problem
	Errors []Fault `json:"errors"` // all of them
}

// Error lists all faults.
func (e *Invalid) Error() string {
	all := e.Problem.Error()
	for _, f := range e.Errors {
		all += "; " + f.Location + ": " + f.Message
	}
	return all
}

// QuotaExceeded says that the recipient's quota has no place at the send time (quota-exceeded).
type QuotaExceeded struct {
	Problem
	NoPlace
}

// QuietHours says that the send time lies in quiet hours, and that no rule is broken besides (quiet-hours).
type QuietHours struct {
	Problem
	NoPlace
}

// NoPlace is why there is no place at a send time, and where there is one. A time that is not there is zero.
type NoPlace struct {
	Violations          []Violation `json:"violations"`
	NextAvailableAt     time.Time   `json:"next_available_at"`
	PreviousAvailableAt time.Time   `json:"previous_available_at"`
}

// OptedOut says that the recipient does not want the push (opted-out).
type OptedOut struct {
	Problem
	OptedOut OptOuts `json:"opted_out"` // which of the opt-outs it goes against
}

// Suppressed says that the address of the push is suppressed (suppressed).
type Suppressed struct {
	Problem
	Suppression SuppressedFor `json:"suppression"` // the oldest entry in force
}

// Forbidden says that the caller lacks a scope (forbidden).
type Forbidden struct {
	Problem
	Scope string `json:"scope"` // that it lacks
}

// CapExceeded says that the operator allows the tenant no more (tenant-cap-exceeded).
type CapExceeded struct {
	Problem
	Cap   string `json:"cap"` // pending_pushes, or recipients_per_day
	Day   string `json:"day"` // that is full; empty for pending_pushes
	Limit int64  `json:"limit"`
	Used  int64  `json:"used"`
}

// PushState says that the state of a push forbids the call (not-cancelable, not-reschedulable, not-retryable).
type PushState struct {
	Problem
	Push Push `json:"push"` // as it stands
}

// CampaignState says that the state of a campaign forbids the call (campaign-state).
type CampaignState struct {
	Problem
	Campaign Campaign `json:"campaign"` // as it stands
}

// ChannelInUse says that a channel is not deleted, because pushes are booked for it, or campaigns go on booking them
// (channel-in-use).
type ChannelInUse struct {
	Problem
	Pushes    int64 `json:"pushes"`    // the number of booked pushes
	Campaigns int64 `json:"campaigns"` // the number of campaigns in progress with more recipients: cancel these first
	Canceled  int64 `json:"canceled"`  // the number of pushes that the deletion has canceled so far
}

// PushGone says that the push of an Idempotency-Key is not kept any more (push-gone).
type PushGone struct {
	Problem
	PushID string `json:"push_id"`
}

// BatchRefused says that a batch is atomic and not all of its pushes have a place. Nothing was booked.
type BatchRefused struct {
	Problem
	Accepted int64    `json:"accepted"`
	Refused  int64    `json:"refused"`
	Results  []Result `json:"results"` // one for each push, in their order
}

// RateLimited says that the caller is too fast (rate-limited, or another answer of 429).
type RateLimited struct {
	Problem
	RetryAfter time.Duration `json:"-"` // 0: not said
}

// Unavailable says that the API cannot answer now (any answer of 503). What the call was to do may have been done.
type Unavailable struct {
	Problem
	RetryAfter time.Duration `json:"-"` // 0: not said
}

// Unwrap returns the problem.
func (e *Invalid) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *QuotaExceeded) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *QuietHours) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *OptedOut) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *Suppressed) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *Forbidden) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *CapExceeded) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *PushState) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *CampaignState) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *ChannelInUse) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *PushGone) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *BatchRefused) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *RateLimited) Unwrap() error { return &e.Problem }

// Unwrap returns the problem.
func (e *Unavailable) Unwrap() error { return &e.Problem }

// longestProblem is the longest problem that is read: the problem of an atomic batch has a part for each push.
const longestProblem = 32 << 20

// problemOf reads an answer that is no success.
func problemOf(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestProblem))
	if err != nil {
		return fmt.Errorf("read the answer %s: %w", answer.Status, err)
	}
	plain := Problem{Title: answer.Status, RequestID: answer.Header.Get("X-Request-Id")}
	_ = json.Unmarshal(text, &plain) // a proxy answers in its own words
	plain.Status = answer.StatusCode
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	wait := time.Duration(max(seconds, 0)) * time.Second
	switch answer.StatusCode {
	case http.StatusTooManyRequests:
		return &RateLimited{plain, wait}
	case http.StatusServiceUnavailable:
		return &Unavailable{plain, wait}
	}
	batch := BatchRefused{Problem: plain}
	if json.Unmarshal(text, &batch) == nil && batch.Results != nil { // its type is the type of the first refusal
		return &batch
	}
	return typed(plain, text)
}

// typed gives a problem the type of its kind.
func typed(p Problem, text []byte) error {
	var err error = &p
	switch p.Name() {
	case "invalid-request":
		err = &Invalid{Problem: p}
	case "quota-exceeded":
		err = &QuotaExceeded{Problem: p}
	case "quiet-hours":
		err = &QuietHours{Problem: p}
	case "opted-out":
		err = &OptedOut{Problem: p}
	case "suppressed":
		err = &Suppressed{Problem: p}
	case "forbidden":
		err = &Forbidden{Problem: p}
	case "tenant-cap-exceeded":
		err = &CapExceeded{Problem: p}
	case "not-cancelable", "not-reschedulable", "not-retryable":
		err = &PushState{Problem: p}
	case "campaign-state":
		err = &CampaignState{Problem: p}
	case "channel-in-use":
		err = &ChannelInUse{Problem: p}
	case "push-gone":
		err = &PushGone{Problem: p}
	}
	if json.Unmarshal(text, err) != nil {
		return &p
	}
	return err
}

// Err is why the push of a batch was not accepted, with the type that a single submit would have got; nil: it was.
func (r Result) Err() error {
	if len(r.Problem) == 0 {
		return nil
	}
	var p Problem
	if err := json.Unmarshal(r.Problem, &p); err != nil {
		return fmt.Errorf("result %d: %w", r.Index, err)
	}
	return typed(p, r.Problem)
}
