// Package rest is the frame of a REST API on chi and huma: it reads requests, answers them, and documents both. It knows no
// operation of its own; package httpapi has them.
//
// A request (api.go) gets an id and a deadline, and chi finds its route. The API checks the key
// (keycache.go) and charges the limits of callers (callers.go). The handler reads the query, the headers and the body, and
// collects every error (fielderrors.go) before it calls a service. A handler returns an error, and answer.go turns it into a problem.
//
// A row of a table of operations (operation.go) has the path, the scope, the handler and the documentation of an operation. The
// members of a body and the parameters of a query are tables, too (table.go): each row has a name, a value (values.go) and a
// description. Requests are read by these tables, and the schemas of the OpenAPI document are generated from them. The
// package reads bodies in one pass with jsontext (jsonreader.go), because huma's own validation answers before a handler can add its
// errors, and because a batch of 1000 must be read in a few milliseconds. huma holds the operations and the schemas, which
// /openapi.json and /docs show.
//
// The memory of requests and answers is bounded (call.go), for all tenants together and for each.
package rest
