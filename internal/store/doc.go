// Package store keeps the data of all tenants in Postgres and decides about quotas: a booking is valid if and only if
// it is committed here. It opens one connection (package pg) and combines the subjects, each with a package of its
// own. In the services, only these packages import pgx.
//
// Work on many pushes at a time (booking, claiming, finishing) groups concurrent calls into one transaction each; see
// the package groupcommit.
package store
