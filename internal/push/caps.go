package push

// Caps bound what one tenant may have at a time, so that no tenant hogs what all share. A cap of 0 is none.
type Caps struct {
	PendingPushes    int // pushes that are scheduled or being sent
	RecipientsPerDay int // distinct recipients of pushes whose send time lies on one UTC day
}

// OwnCaps are what the operator has set for one tenant; nil: what holds for all tenants.
type OwnCaps struct{ PendingPushes, RecipientsPerDay, AudienceBytes *int }

// Bytes returns how many bytes the audiences of a tenant with caps of its own may have, where usual holds for all others; 0: any number.
func (own OwnCaps) Bytes(usual int) int {
	if own.AudienceBytes != nil {
		return *own.AudienceBytes
	}
	return usual
}

// Over returns what holds for a tenant with caps of its own, where usual holds for all others.
func (own OwnCaps) Over(usual Caps) Caps {
	if own.PendingPushes != nil {
		usual.PendingPushes = *own.PendingPushes
	}
	if own.RecipientsPerDay != nil {
		usual.RecipientsPerDay = *own.RecipientsPerDay
	}
	return usual
}
