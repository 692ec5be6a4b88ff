package delivery

import "time"

// Store is the part of the store that a worker uses.
type Store = attempts

// Settle waits for the attempts that lanes have begun.
func (w *Worker) Settle() { w.attempts.Wait() }

// OwnQueues counts the queues of channels of tenants.
func (w *Worker) OwnQueues() int { return len(w.queues.own.list()) }

// ForgetIdle forgets the queues that have been idle for long after some time.
func (w *Worker) ForgetIdle(in time.Duration) { w.queues.own.forgetIdle(time.Now().Add(in)) }
