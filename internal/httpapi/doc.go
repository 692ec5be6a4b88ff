// Package httpapi is the REST API: it turns HTTP into calls of the schedule and their results into JSON, on chi and
// huma. It decides nothing about quotas or pushes.
//
// The way of a request (middleware.go, api.go): it gets an id and a deadline, chi finds its route, its key is checked
// (auth.go), the handler reads all of the query, the headers and the body, and collects every error (fielderrors.go)
// before it asks the schedule. A handler returns an error; problem.go alone turns errors into answers.
//
// There is one file per resource, with its handlers and its JSON; routes.go has one row for each operation. What a caller
// may send is a table (table.go) of values (values.go): a row is a member of a body or a parameter of a query. The rows
// stand beside their handler, those of a push in pushfields.go, those of speed limits in limitfields.go. Requests are
// read by the table, and the schemas in the OpenAPI document come from it. Bodies are walked over once with jsontext
// (jsonreader.go), because huma's own validation answers before a handler can add what it finds, and because a batch of
// 1000 has to be read in a few milliseconds. huma holds the operations and the schemas, which /openapi.json and /docs
// show.
package httpapi
