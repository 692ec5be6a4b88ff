// Package rediskey names what is in Redis, so that the programs of several
// installations can share one: each has its own database, and its own keys and queues.
package rediskey

// Installation returns the name of the database: a few letters and digits that no
// other database has. It is unknown until Postgres has answered once. A nil
// Installation is the only one.
type Installation func() (name string, known bool)

// Prefix is how the names of all keys begin.
func (i Installation) Prefix() (prefix string, known bool) {
	if i == nil {
		return "sq:", true
	}
	name, known := i()
	return "sq:" + name + ":", known
}

// Queue is how the names of all queues begin.
func (i Installation) Queue() (prefix string, known bool) {
	if i == nil {
		return "push-", true
	}
	name, known := i()
	return "push-" + name + "-", known
}
