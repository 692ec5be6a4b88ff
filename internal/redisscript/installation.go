package redisscript

import "errors"

// ErrUnnamed is returned until Postgres has returned the name of this installation.
var ErrUnnamed = errors.New("redis: the installation has no name yet, because Postgres has not answered")

// Installation returns the name of the database: a few letters and digits that are unique to it. Several installations
// can share one Redis, because the name is part of all their keys and queues. It is unknown until Postgres has answered
// once. A nil Installation means that there is only one.
type Installation func() (name string, known bool)

// Prefix returns the prefix of all keys. The error is [ErrUnnamed].
func (i Installation) Prefix() (string, error) { return i.named("sq:", ":") }

// Queue returns the prefix of all queues. The error is [ErrUnnamed].
func (i Installation) Queue() (string, error) { return i.named("push-", "-") }

func (i Installation) named(before, after string) (string, error) {
	if i == nil {
		return before, nil
	}
	name, known := i()
	if !known {
		return "", ErrUnnamed
	}
	return before + name + after, nil
}
