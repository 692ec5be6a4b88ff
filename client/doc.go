// Package client makes calls to the REST API of sendquota: it submits, moves and cancels pushes, asks for quotas, describes
// recipients, manages policies, schedules and webhooks, uses speed limits, and runs campaigns.
//
//	c, err := client.New("https://api.example.com", key, client.Config{})
//	push, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "user-42", Message: client.Message{"title": "Sale"}, SendAt: at})
//	var full *client.QuotaExceeded
//	if errors.As(err, &full) {
//		fmt.Println("the next free time is", full.NextAvailableAt)
//	}
//
// A refusal is an error with its own type, such as [QuotaExceeded], [OptedOut] or [Invalid]; each of them, and every
// other unsuccessful answer, is a [Problem] too. An error that is no Problem means that there was no answer.
//
// A call is retried, with growing pauses, if there was no answer or the API was not available, and if a second call
// changes nothing more. This applies to calls that read, replace or remove, and to calls with an
// Idempotency-Key. Methods with the argument key accept one: for an empty one, the client makes a new key for each call, so
// that its retries change nothing twice. A program that may repeat a call after a crash passes a key that it still knows then.
// A rate-limited call has changed nothing, and is always retried. Contexts bound the calls: there are no other
// time-outs.
//
// Lists are iterators that request each page when they reach it. Times are UTC in answers; a time that is null there
// is zero here, like a text that is null. In requests, zero values are left out. Fields that can be changed to their zero
// value are pointers; [Null] removes a member that can be null.
//
// The calls are in groups, as in the API's OpenAPI document: c.Pushes.Submit, c.Campaigns.Start. `make generate` makes them, in
// methods.go, and the types, in types.go, from that document after a change: the methods with the template in
// client/generate, the types with oapi-codegen, which reads OpenAPI 3.1. overlay.yaml lists the differences of the types: it
// omits the paths, and gives some types a clearer name. The problems are written by hand, like the few calls in
// byhand.go. The package is a module of its own, and needs nothing but the standard library.
package client

import "encoding/json"

//go:generate go run ./generate
//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.0 -config oapi-codegen.yaml ../internal/httpapi/openapi.json

// Null is the value of a member of a change that removes the member: ScheduleChange{Until: client.Null}.
var Null any = json.RawMessage("null")
