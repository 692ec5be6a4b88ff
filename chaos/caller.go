package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// caller uses the APIs of a bundle as a careful program would.
type caller struct {
	b    *bundle
	http *http.Client
	sent int    // requests, to choose the next API
	key  string // of the tenant
}

func (b *bundle) newCaller() *caller {
	return &caller{b: b, key: b.Key, http: &http.Client{Timeout: 8 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}}
}

// answer is an answer of an API.
type answer struct {
	status   int
	replayed bool
	body     struct {
		ID       string
		Type     string
		Status   any
		Possibly bool `json:"possibly_delivered"`
		Accepted int
		Results  []struct {
			Status  int
			Push    struct{ ID string }
			Problem struct{ Type string }
		}
	}
}

// try sends a request to one of the APIs once. After an error the outcome is not known.
func (c *caller) try(ctx context.Context, method, path, key string, body any) (answer, error) {
	var (
		a    answer
		text []byte
		err  error
	)
	if body != nil {
		if text, err = json.Marshal(body); err != nil {
			return a, err
		}
	}
	c.sent++
	addr := c.b.addrs[c.sent%len(c.b.addrs)]
	req, err := http.NewRequestWithContext(ctx, method, "http://"+addr+path, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
		req.GetBody = nil // else the client tries again by itself
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.b.history.count("no answer")
		return a, err
	}
	defer res.Body.Close()
	a.status, a.replayed = res.StatusCode, res.Header.Get("Idempotency-Replayed") == "true"
	if err := json.NewDecoder(res.Body).Decode(&a.body); err != nil {
		c.b.history.count("no answer")
		return a, err
	}
	c.b.history.count(fmt.Sprint(res.StatusCode))
	if later(res.StatusCode) && res.Header.Get("Retry-After") == "" {
		c.b.history.count("no Retry-After")
	}
	return a, nil
}

// later reports whether an answer asks the caller to repeat the request.
func later(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

// insist repeats a request for at most twenty seconds, as long as an API asks for that. The request has an
// Idempotency-Key, or may be made twice.
func (c *caller) insist(ctx context.Context, method, path, key string, body any) (a answer, tries int) {
	for deadline := time.Now().Add(20 * time.Second); ; {
		tries++
		a, err := c.try(ctx, method, path, key, body)
		if err == nil && !later(a.status) {
			return a, tries
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return answer{}, tries
		}
		time.Sleep(50 * time.Millisecond) // shorter than Retry-After says: more requests meet the fault
	}
}

func (o *op) settle(a answer, tries int) {
	o.Ended, o.Status, o.Tries = time.Now(), a.status, tries
	o.Replayed, o.Possibly, o.Problem = a.replayed, a.body.Possibly, problemName(a.body.Type)
}

func problemName(urn string) string { return strings.TrimPrefix(urn, "urn:sendquota:problem:") }

type object = map[string]any

func pushBody(recipient, channel string, at time.Time) object {
	b := object{"recipient": recipient, "message": object{"title": "chaos"}, "send_at": at.UTC().Format(time.RFC3339)}
	if channel != "" {
		b["channel"] = channel
	}
	return b
}

// submit submits one push.
func (c *caller) submit(ctx context.Context, recipient, channel, key string, at time.Time) op {
	return c.book(ctx, op{Recipient: recipient, Channel: channel, Key: key, At: at.UTC()}, pushBody(recipient, channel, at))
}

// submitBrief submits one push that expires soon after its time.
func (c *caller) submitBrief(ctx context.Context, recipient, channel, key string, at time.Time) {
	body := pushBody(recipient, channel, at)
	body["expires_at"] = at.Add(2 * time.Second).UTC().Format(time.RFC3339)
	c.book(ctx, op{Recipient: recipient, Channel: channel, Key: key, At: at.UTC(), Brief: true}, body)
}

// book submits a body. With a key it repeats the request until it has an answer; without one it cannot, and may never
// learn the outcome.
func (c *caller) book(ctx context.Context, o op, body object) op {
	o.Kind, o.Began = submitted, time.Now()
	a, tries := answer{}, 1
	if o.Key != "" {
		a, tries = c.insist(ctx, "POST", "/v1/pushes", o.Key, body)
	} else if once, err := c.try(ctx, "POST", "/v1/pushes", "", body); err == nil && once.status != http.StatusServiceUnavailable {
		a = once
	}
	o.settle(a, tries)
	o.ID = a.body.ID
	c.b.history.add(o)
	return o
}

// batch submits several at once.
func (c *caller) batch(ctx context.Context, key string, atomic bool, wanted []op) {
	var pushes []object
	for _, o := range wanted {
		pushes = append(pushes, pushBody(o.Recipient, o.Channel, o.At))
	}
	c.submitBatch(ctx, key, atomic, wanted, pushes)
}

// submitBatch submits these bodies for the wanted pushes.
func (c *caller) submitBatch(ctx context.Context, key string, atomic bool, wanted []op, pushes []object) {
	began := time.Now()
	a, tries := c.insist(ctx, "POST", "/v1/pushes/batch", key, object{"pushes": pushes, "atomic": atomic})
	ops := make([]op, len(wanted))
	for i, o := range wanted {
		o.Kind, o.Key, o.Began, o.Ended, o.Tries, o.Batch, o.Replayed = submitted, key, began, time.Now(), tries, true, a.replayed
		if i < len(a.body.Results) {
			r := a.body.Results[i]
			o.Status, o.ID, o.Problem = r.Status, r.Push.ID, problemName(r.Problem.Type)
		}
		ops[i] = o
	}
	c.b.history.add(ops...)
}

func (c *caller) cancel(ctx context.Context, of op) {
	o := op{Kind: canceled, Recipient: of.Recipient, ID: of.ID, Began: time.Now()}
	o.settle(c.insist(ctx, "POST", "/v1/pushes/"+of.ID+"/cancel", "", nil))
	c.b.history.add(o)
}

func (c *caller) move(ctx context.Context, of op, to time.Time) op {
	o := op{Kind: moved, Recipient: of.Recipient, ID: of.ID, At: to.UTC(), Began: time.Now()}
	o.settle(c.insist(ctx, "PATCH", "/v1/pushes/"+of.ID, "", object{"send_at": to.UTC().Format(time.RFC3339)}))
	c.b.history.add(o)
	return o
}
