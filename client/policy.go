package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// Policy reads the policy in force.
func (c *Client) Policy(ctx context.Context) (Policy, error) {
	return ask[Policy](ctx, c, call{method: http.MethodGet, path: path("policy"), repeat: true})
}

// PolicyOptions say how a policy changes.
type PolicyOptions struct {
	// IfVersion has the change refused, with status 412, unless this version is in force; nil: whatever is.
	IfVersion *int64

	// Apply says what becomes of waiting pushes that do not fit: new_only (they stay; the default), reslot or cancel.
	Apply string
}

func (o PolicyOptions) call(method string, forecast bool, body any) call {
	query := params{"apply": o.Apply, "forecast": forecast}
	if forecast {
		delete(query, "apply")
	}
	made := call{method: method, path: path("policy"), query: query.values(), body: body, repeat: o.IfVersion == nil}
	if o.IfVersion != nil { // the second time, the version would be another
		made.header = http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(*o.IfVersion, 10))}}
	}
	return made
}

// PutPolicy puts a policy in force for everything that is submitted afterwards.
func (c *Client) PutPolicy(ctx context.Context, p NewPolicy, o PolicyOptions) (Policy, error) {
	return ask[Policy](ctx, c, o.call(http.MethodPut, false, p))
}

// DeletePolicy goes back to the operator's policy.
func (c *Client) DeletePolicy(ctx context.Context, o PolicyOptions) (Policy, error) {
	return ask[Policy](ctx, c, o.call(http.MethodDelete, false, nil))
}

// ForecastPolicy says which waiting pushes do not fit into a policy: Conflicts, ByRule and First. It changes nothing.
func (c *Client) ForecastPolicy(ctx context.Context, p NewPolicy) (PolicyChange, error) {
	return ask[PolicyChange](ctx, c, PolicyOptions{}.call(http.MethodPut, true, p))
}

// PolicyOperation reads how far a change has been carried on to what is booked.
func (c *Client) PolicyOperation(ctx context.Context, id string) (Operation, error) {
	return ask[Operation](ctx, c, call{method: http.MethodGet, path: path("policy", "operations", id), repeat: true})
}

// PolicyVersions lists the policies that the tenant had, the newest first.
func (c *Client) PolicyVersions(ctx context.Context) iter.Seq2[PolicyVersion, error] {
	return list(ctx, c, path("policy", "versions"), params{}.values(), func(p PolicyVersionsPage) ([]PolicyVersion, string) { return p.Versions, p.NextPageToken })
}

// ShadowRules says what rules with shadow would have refused. What is zero is the API's default.
func (c *Client) ShadowRules(ctx context.Context, from, until time.Time) (Shadow, error) {
	query := params{"from": from, "until": until}
	return ask[Shadow](ctx, c, call{method: http.MethodGet, path: path("policy", "shadow"), query: query.values(), repeat: true})
}
