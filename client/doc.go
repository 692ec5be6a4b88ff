// Package client makes calls to the REST API of sendquota: it submits, moves and cancels pushes, asks for quotas, describes
// recipients, keeps policies, schedules and webhooks, takes from speed limits, and runs campaigns.
//
//	c, err := client.New("https://api.example.com", key, client.Config{})
//	push, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "user-42", Message: client.Message{"title": "Sale"}, SendAt: at})
//	var full *client.QuotaExceeded
//	if errors.As(err, &full) {
//		fmt.Println("the next free time is", full.NextAvailableAt)
//	}
//
// A refusal is an error with a type of its own, such as [QuotaExceeded], [OptedOut] or [Invalid]; each of them, and every
// other answer that is no success, is a [Problem] too. An error that is no Problem means that there was no answer.
//
// A call is made again, with pauses that grow, when there was no answer or the API was not available, if the second time
// does nothing more than the first. That holds for calls that read, replace or remove, and for those with an
// Idempotency-Key. Methods with the argument key take one: with an empty one, the client makes a new one for each call, so
// that its own repetitions do nothing twice. A program that may call again after a crash gives one that it will know then.
// A call that was rate-limited did nothing, and is made again in any case. Contexts bound the calls: there are no other
// time-outs.
//
// Lists are iterators that ask for the next page when they come to it. Times are UTC in answers; a time that is null there
// is zero here, as is a text that is null. In requests, what is zero is left out. Fields that can be changed to their zero
// value are pointers; [Null] removes a member that can be null.
//
// The calls are in groups, as in the API's OpenAPI document: c.Pushes.Submit, c.Campaigns.Start. `make generate` makes them, in
// methods.go, and the types, in types.go, from that document after it has changed: the methods with the template in
// client/generate, the types with oapi-codegen, which reads OpenAPI 3.1 as it is. overlay.yaml says in what the types differ: it
// leaves out the paths, and gives some types a name that says more. The problems are written by hand, as are the few calls in
// byhand.go. The package is a module of its own, and needs nothing but the standard library.
package client

import "encoding/json"

//go:generate go run ./generate
//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.0 -config oapi-codegen.yaml ../internal/httpapi/openapi.json

// Null removes, as the value of a member of a change, what it names: ScheduleChange{Until: client.Null}.
var Null any = json.RawMessage("null")
