// Package push defines the central types of sendquota: the push (one message for one recipient through one channel at
// one send time), its states, its attempts ("sends"), and the wake-up that travels through the queue.
//
// It is pure: values and decisions about values. It knows nothing of Postgres, Redis, HTTP or quotas.
package push
