package activity

// guarantee is a promise of docs/guarantees.md, in the same words: a test compares them.
type guarantee struct{ Name, Promise string }

var guarantees = []guarantee{
	{"I1", "An accepted push ends `sent`, `failed`, `expired` or `canceled`, and its record has the reason. None is lost."},
	{"I2", "In no window does a recipient have more sends than the limit, neither in promised nor in actual times."},
	{"I3", "One attempt in flight for a recipient; one final record; every attempt has the same idempotency key."},
	{"I4", "After a cancel is confirmed, nothing is delivered. If an earlier attempt may have been delivered, the answer has `possibly_delivered: true`."},
	{"I5", "A refused request leaves no trace in any quota."},
	{"I6", "Within 30 days the same Idempotency-Key with the same request gets the same push, or a 410 if the push is no longer kept; with another request, a clear error. None is booked twice."},
	{"I7", "After the answer to a change of a policy, every process decides new submits by the new policy."},
	{"I8", "Each occurrence of a schedule has one record, and submits one push, not before its time. Once a deletion is answered, nothing is submitted."},
	{"I9", "Each recipient of a campaign is decided and recorded once, with the reason. The numbers add up to the audience at every moment. From two seconds after a pause or cancel is answered, no attempt begins; a cancel releases every place. A start does what its simulation showed, if nothing came between."},
}
