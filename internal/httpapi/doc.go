// Package httpapi is the REST API: it turns HTTP into calls of the schedule
// and their results into JSON, on chi and huma. It decides nothing about
// quotas or pushes.
//
// The way of a request (middleware.go, api.go): it gets an id and a deadline,
// chi finds its route, its key is checked (auth.go), the handler reads all of
// the query, the headers and the body, and collects every fault (faults.go)
// before it asks the schedule. A handler returns an error; problem.go alone
// turns errors into answers.
//
// There is one file per resource, with its handler, its JSON and its
// documentation. huma holds the operations and the schemas, which are what
// /openapi.json and /docs show. Bodies are walked over once with jsontext
// (jsonreader.go) and read member by member, because huma's own validation
// answers schema faults before a handler can add its own, and because a batch
// of 1000 has to be read in a few milliseconds; the tests hold the forms and
// the schemas together.
package httpapi
