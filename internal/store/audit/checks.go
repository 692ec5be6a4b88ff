package audit

// Check is one of the checks that the audit makes.
type Check struct {
	Name, Meaning string
	Guarantee     string // of docs/guarantees.md, that a violation breaks
}

// Checks lists all that the audit looks for. docs/operations.md is held to it.
var Checks = []Check{
	{"promised-window", "More pushes of a recipient are promised within a window than a rule allows.", "I2"},
	{"actual-window", "More attempts may have reached a recipient within a window than a rule allows, counted from when the provider had each.", "I2"},
	{"quiet-hours", "A push is promised, or was sent, within quiet hours of its recipient.", "I2"},
	{"opted-out", "A push was accepted, or sent, for a recipient who had opted out of it.", "I2"},
	{"overlap", "Two attempts of one recipient were under way at once.", "I3"},
	{"overdue", "A push is due, or has expired, for more than five minutes, and still waits; so does one while its channel takes nothing, or workers are too few.", "I1"},
	{"not-live", "A push waits, and the table in which workers look for it does not say so in the same way; or it has ended, and that table says that it waits.", "I1"},
	{"lost", "An attempt's lease ended more than five minutes ago, and the attempt was not ended.", "I1"},
	{"open-attempt", "An attempt has no end, and is not the one that its push is being sent by; or a push is being sent by none.", "I3"},
	{"attempts", "A push counts other attempts than are recorded, or their numbers have gaps.", "I3"},
	{"orphan", "An attempt belongs to no push, or differs from it in tenant, recipient or channel.", "I3"},
	{"outcome", "A push is sent without a delivered attempt, or has failed without any.", "I1"},
	{"delivered-again", "A push was tried again, still waits, or is said to have ended otherwise, although it was known to be delivered.", "I3"},
	{"possibly-delivered", "possibly_delivered is not what the outcomes of the attempts say.", "I4"},
	{"after-end", "An attempt began when the push had ended, or reached the provider after the push was canceled.", "I4"},
	{"early", "A push was sent, or is to be, before its send time.", "I2"},
	{"too-late", "A push was sent when it had expired.", "I1"},
	{"expired-early", "A push expired before its expiry.", "I1"},
	{"no-reason", "A push failed or expired, and its record does not say why.", "I1"},
	{"times", "The times of a push or an attempt contradict each other, lie ahead, or never come.", "I1"},
	{"recipient-key", "A push is filed under a key that is not its recipient's, so that its bookings are not found.", "I2"},
	{"unknown-tenant", "A push belongs to a tenant that does not exist.", "I1"},
	{"idempotency", "One Idempotency-Key made within 30 days pushes from different requests, for different tenants, or one push twice; or it is not known what it has made.", "I6"},
}

// CheckNames lists the names of all [Checks].
func (*Store) CheckNames() []string {
	names := make([]string, len(Checks))
	for i, c := range Checks {
		names[i] = c.Name
	}
	return names
}
