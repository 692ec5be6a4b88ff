// Package httpapi is the REST API of sendquota: it assembles the operations of its subpackages, one for each resource, in the frame
// of package rest. It decides nothing about quotas or pushes.
//
// routes.go lists the groups of operations and the parameters of all paths, kinds.go the types of problems, health.go serves the
// probes, and try.go the page for trying requests. openapi.json is the generated document.
package httpapi
