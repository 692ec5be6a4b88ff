package delivery

// Store is what a worker needs of the store.
type Store = attempts

// Settle waits for the attempts that lanes have begun.
func (w *Worker) Settle() { w.attempts.Wait() }
