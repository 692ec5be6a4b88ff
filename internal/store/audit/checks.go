package audit

// Check describes one check of the audit.
type Check struct {
	Name, Meaning string
	Guarantee     string // the guarantee in docs/guarantees.md that a violation breaks
}

// Checks lists all checks of the audit. A test compares docs/operations.md with it.
var Checks = []Check{
	{"promised-window", "More pushes of a recipient are promised within a window than a rule allows.", "I2"},
	{"actual-window", "More attempts may have reached a recipient within a window than a rule allows, counted from when the provider had each.", "I2"},
	{"quiet-hours", "A push is promised or was sent within quiet hours of its recipient.", "I2"},
	{"opted-out", "A push was accepted or sent for a recipient who had opted out of it.", "I2"},
	{"overlap", "Two attempts of one recipient were under way at once.", "I3"},
	{"overdue", "A push has been due or expired for more than five minutes and still waits. This also happens while its channel takes nothing or workers are too few.", "I1"},
	{"not-live", "A waiting push is missing in the table live, which workers search, or differs there; or a push that has ended is still in it.", "I1"},
	{"lost", "The lease of an attempt expired more than five minutes ago, and the attempt was not ended.", "I1"},
	{"open-attempt", "An attempt has not ended and is not the current attempt of its push; or a push that is being sent has no attempt under way.", "I3"},
	{"attempts", "A push counts more or fewer attempts than are recorded, or their numbers have gaps.", "I3"},
	{"orphan", "An attempt belongs to no push, or differs from it in tenant, recipient or channel.", "I3"},
	{"outcome", "A push was sent without a delivered attempt, or failed without any attempt.", "I1"},
	{"delivered-again", "A push was tried again, still waits, or has another final status, although its delivery was known.", "I3"},
	{"possibly-delivered", "possibly_delivered of a push does not match the outcomes of its attempts.", "I4"},
	{"after-end", "An attempt began after the push had ended, or reached the provider after the push was canceled.", "I4"},
	{"early", "A push was sent, or is scheduled to be sent, before its send time.", "I2"},
	{"too-late", "A push was sent after its expiry.", "I1"},
	{"expired-early", "A push expired before its expiry.", "I1"},
	{"no-reason", "A push failed or expired, and its record gives no reason.", "I1"},
	{"times", "The times of a push or an attempt contradict each other, lie in the future, or are infinite.", "I1"},
	{"recipient-key", "A push is stored under a key that is not its recipient's, so that its bookings are not found.", "I2"},
	{"unknown-tenant", "A push belongs to a tenant that does not exist.", "I1"},
	{"idempotency", "Within 30 days, one Idempotency-Key made pushes from different requests or for different tenants, or one push twice; or the record of the key is missing.", "I6"},
}

// CheckNames lists the names of all [Checks].
func (*Store) CheckNames() []string {
	names := make([]string, len(Checks))
	for i, c := range Checks {
		names[i] = c.Name
	}
	return names
}
