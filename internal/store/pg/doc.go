// Package pg is the connection to Postgres that all subjects of the store share: pools, transactions with retries, poolers,
// partitions, lanes, locks, leases, migrations and checks of the server. Statements of one subject belong to its package.
package pg
