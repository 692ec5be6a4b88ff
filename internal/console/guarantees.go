package console

// guarantee is a promise of docs/guarantees.md, in the same words: a test compares them.
type guarantee struct{ Name, Promise string }

var guarantees = []guarantee{
	{"I1", "An accepted push ends `sent`, `failed`, `expired` or `canceled`, and its record says why. None is lost."},
	{"I2", "In no window does a recipient have more sends than the limit, neither in promised nor in actual times."},
	{"I3", "One attempt in flight for a recipient; one final record; every attempt bears the same idempotency key."},
	{"I4", "After a cancel is confirmed, nothing is delivered. If an earlier attempt may have been, the answer says `possibly_delivered: true`."},
	{"I5", "A refused request leaves no trace in any quota."},
	{"I6", "Within 30 days the same Idempotency-Key with the same request gets the same push, or, if that is not kept any more, a 410; with another request, a clear error. None is booked twice."},
	{"I7", "What is submitted after the answer to a change of a policy is decided by the new one, in every process."},
	{"I8", "Each occurrence of a schedule has one record. What it submits is one push, not before its time. Once a deletion is answered, nothing is submitted."},
	{"I9", "Everybody in a campaign is decided exactly once: booked as one push, or refused, opted out, invalid or canceled, and on record with the reason. The numbers of a campaign add up to its audience at every moment. From two seconds after the answer to a pause or a cancel on, no attempt of it begins; a cancel gives every place back. With nothing in between, a start does what the simulation said."},
}
