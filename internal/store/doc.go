// Package store keeps tenants, keys, pushes and sends in Postgres, and decides about quotas: a booking holds if and
// only if it is committed here. It is the only package that imports pgx.
//
// Work on many pushes at once (booking, claiming, finishing) is gathered from concurrent callers into one transaction
// each; see the package groupcommit.
package store
