package delivery

// Store is the part of the store that a worker uses.
type Store = attempts

// Settle waits for the attempts that lanes have begun.
func (w *Worker) Settle() { w.attempts.Wait() }
