package delivery

// Settle waits for the attempts that lanes have begun.
func (w *Worker) Settle() { w.attempts.Wait() }
