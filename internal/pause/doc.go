// Package pause defines pauses: a tenant, or the operator for all tenants, stops sending for a while. It is pure: the
// store keeps pauses, and a claim decides by them (package booking).
package pause
