package activity

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// retryStep is the number of pushes that one step of a group retry takes, and retryCalls of its concurrent calls.
const (
	retryStep  = 200
	retryCalls = 4
)

// shortLife is a lifetime that a busy provider, a pause or a restart can easily use up.
const shortLife = 5 * time.Minute

// failuresView are the groups of what has failed.
type failuresView struct {
	client.Failures
}

// showFailures shows what has failed or expired, in groups.
func showFailures(p *frame.Page) error {
	view := failuresView{}
	if err := p.List("/v1/failures", 0, &view.Failures, "channel", "campaign"); err != nil { // it has no pages
		return p.ShowAgain(err, "failures", "Failures", view)
	}
	return p.Show("failures", "Failures", view)
}

// Meaning says in plain words what a group means, and what to do.
func (failuresView) Meaning(g client.FailureGroup) failureMeaning { return meaningOf(g) }

// failureMeaning explains a group of failures and names the remedy.
type failureMeaning struct{ Means, Do string }

// failureMeanings are matched by a part of the reason; the first match counts.
var failureMeanings = []struct {
	part string
	failureMeaning
}{
	{"channel is not configured", failureMeaning{"The channel no longer exists.", "Ask an operator to configure it again and then retry, or send the messages on another channel."}},
	{"unregistered", failureMeaning{"The provider no longer knows this address.", "Remove the address. A retry fails again while the address is the same."}},
	{"unsubscribed", failureMeaning{"The person has blocked this sender at the provider.", "Record an opt-out for the person. Do not retry."}},
	{"credential", failureMeaning{"The provider does not accept the channel’s credentials.", "Ask an operator to correct them, then retry."}},
	{"429", tooFast},
	{"too many requests", tooFast},
	{"too fast", tooFast},
	{"no answer", failureMeaning{"The provider did not respond in time, so the message may or may not have been sent.", "Retry if a second copy does no harm."}},
}

var tooFast = failureMeaning{"The provider rejects messages at this speed.", "Ask an operator to lower the channel’s speed, then retry."}

func meaningOf(g client.FailureGroup) failureMeaning {
	for _, m := range failureMeanings {
		if strings.Contains(strings.ToLower(g.Reason), m.part) {
			return m.failureMeaning
		}
	}
	switch {
	case g.Status == client.FailureGroupStatusExpired:
		return failureMeaning{"The message expired while it waited for a limit, a pause, the provider or a worker.", "Check the page Now for the cause. Retry messages that are still useful."}
	case g.PossiblyDelivered > 0:
		return failureMeaning{"Attempts broke off after the message was handed over. Some may have arrived.", "Retry if a second copy does no harm."}
	case strings.Contains(g.Reason, "no connection"):
		return failureMeaning{"The provider could not be reached in any attempt.", "Check the page Now. Retry when the channel works again."}
	case strings.HasPrefix(g.Reason, "gave up after "):
		return failureMeaning{"The provider did not accept the message in any attempt.", "Correct what the reason names, then retry."}
	}
	return failureMeaning{"The provider refused the message permanently.", "Correct what the reason names, then retry."}
}

// retriesView is the progress of a group retry, or its preview.
type retriesView struct {
	Filter    []formField // the group
	Began     time.Time   // start of the first step: later pushes are skipped, or retries that fail at once would be retried forever
	Try       bool        // nothing is booked: it is a preview
	Until     time.Time   // when all retries expire; zero: each lives as long as its push did
	Looked    int
	Accepted  int
	Again     int           // were retried before
	Twice     int           // of the accepted ones, may arrive twice
	Shortest  time.Duration // lifetime of the accepted ones, after their send times
	Ends      time.Time     // of the lifetime that ends first; zero: none was accepted
	Refused   []reasonCount
	NextToken string // token of the next step; empty at the end
}

type formField struct{ Name, Value string }

type reasonCount struct {
	Reason string
	Pushes int
}

// retryFailures retries the pushes of a group, step by step: each request does one step, and hands what was counted to the next.
func retryFailures(p *frame.Page) error {
	view := &retriesView{Try: p.Field("do") != "retry", Began: p.Now()}
	query := url.Values{"page_size": {strconv.Itoa(retryStep)}}
	for _, name := range []string{"status", "channel", "reason", "campaign", "from", "until"} {
		if v := p.Request.PostForm.Get(name); v != "" {
			query.Set(name, v)
			view.Filter = append(view.Filter, formField{name, v})
		}
	}
	if token := p.Field("page_token"); token != "" {
		query.Set("page_token", token)
		view.resume(p)
	}
	until, err := retriesUntil(p)
	if err != nil {
		view.Try = true
		return p.ShowAgain(err, "failuresretry", "Retry failures", view)
	}
	view.Until = until
	var found client.PushesPage
	if err := p.API.Get(p.Context(), "/v1/pushes", query, &found); err != nil {
		return err
	}
	before := slices.DeleteFunc(found.Pushes, func(one client.Push) bool { return one.CreatedAt.After(view.Began) })
	if err := view.step(p, before); err != nil {
		return err
	}
	view.NextToken = found.NextPageToken
	title := "Retry failures"
	if view.Try {
		title = "Preview of a retry"
	}
	return p.Show("failuresretry", title, view)
}

// retriesUntil returns the expiry of retries from the form; zero if it has none.
func retriesUntil(p *frame.Page) (at time.Time, err error) {
	if p.Field("expires_at") == "" {
		return at, nil
	}
	var bad frame.Faults
	if at, err = p.FormTime("expires_at"); err == nil && !at.After(p.Now()) {
		err = errors.New("must be in the future")
	}
	bad.Add("expires_at", err)
	return at, bad.Problem()
}

// resume takes over what earlier steps have counted.
func (v *retriesView) resume(p *frame.Page) {
	count := func(name string) int {
		n, _ := strconv.Atoi(p.Field(name)) // the user's own page counts in it
		return n
	}
	if began, err := time.Parse(time.RFC3339Nano, p.Field("began")); err == nil {
		v.Began = began
	}
	if ends, err := time.Parse(time.RFC3339Nano, p.Field("ends")); err == nil {
		v.Ends, v.Shortest = ends, time.Duration(count("shortest"))
	}
	v.Looked, v.Accepted, v.Again, v.Twice = count("looked"), count("accepted"), count("again"), count("twice")
	for _, one := range p.Request.PostForm["refused"] {
		n, reason, _ := strings.Cut(one, " ")
		if pushes, err := strconv.Atoi(n); err == nil {
			v.Refused = append(v.Refused, reasonCount{reason, pushes})
		}
	}
}

// step retries some pushes, or looks what that would do. A push is never retried twice: the API knows its retry.
func (v *retriesView) step(p *frame.Page, pushes []client.Push) error {
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		fatal error
		turn  = make(chan struct{}, retryCalls)
	)
	how := client.NewRetry{OnConflict: client.NewRetryOnConflict(p.Field("on_conflict")), ExpiresAt: v.Until}
	for _, one := range pushes {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			var (
				retry client.Push
				err   error
			)
			if v.Try {
				retry, err = p.API.Pushes.ValidateRetry(p.Context(), one.ID, how)
			} else {
				retry, err = p.API.Pushes.Retry(p.Context(), "", one.ID, how)
			}
			mu.Lock()
			defer mu.Unlock()
			v.Looked++
			var problem *client.Problem
			switch {
			case err == nil && p.Made.StatusOf("/v1/pushes/"+one.ID+"/retry") == http.StatusOK: // 201: it is a new one, or would be
				v.Again++
			case err == nil:
				v.accept(retry)
			case errors.As(err, &problem) && (problem.Status == http.StatusConflict || problem.Status == http.StatusUnprocessableEntity):
				v.refuse(reasonOf(err))
			default:
				fatal = errors.Join(fatal, err)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(v.Refused, func(a, b reasonCount) int { return cmp.Or(b.Pushes-a.Pushes, cmp.Compare(a.Reason, b.Reason)) })
	return fatal
}

// accept counts a retry, and notes how long it lives.
func (v *retriesView) accept(retry client.Push) {
	lives := retry.ExpiresAt.Sub(retry.SendAt)
	if v.Accepted == 0 || lives < v.Shortest {
		v.Shortest = lives
	}
	if v.Accepted == 0 || retry.ExpiresAt.Before(v.Ends) {
		v.Ends = retry.ExpiresAt
	}
	v.Accepted++
	if retry.PossiblyDelivered {
		v.Twice++
	}
}

// Short reports whether retries live so short that they may well expire again.
func (v *retriesView) Short() bool { return v.Accepted > 0 && v.Shortest < shortLife }

// refuse counts a refusal.
func (v *retriesView) refuse(reason string) {
	at := slices.IndexFunc(v.Refused, func(r reasonCount) bool { return r.Reason == reason })
	if at < 0 {
		at, v.Refused = len(v.Refused), append(v.Refused, reasonCount{Reason: reason})
	}
	v.Refused[at].Pushes++
}

// reasonOf says in a few words why a push finds no place. It names no person: so refusals can be counted.
func reasonOf(err error) string {
	var (
		quota  *client.QuotaExceeded
		quiet  *client.QuietHours
		opted  *client.OptedOut
		full   *client.CapExceeded
		other  *client.Problem
		broken = func(all []client.Violation) string {
			var names []string
			for _, one := range all {
				names = append(names, one.Rule)
			}
			return strings.Join(names, ", ")
		}
	)
	switch {
	case errors.As(err, &quota):
		return "limit reached: " + broken(quota.Violations)
	case errors.As(err, &quiet):
		return "quiet hours: " + broken(quiet.Violations)
	case errors.As(err, &opted):
		return "the person has opted out"
	case errors.As(err, &full):
		return "the operator’s cap: " + full.Cap
	case errors.As(err, &other):
		return cmp.Or(other.Title, other.Name())
	}
	return err.Error()
}
