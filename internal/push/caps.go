package push

// Caps bound what one tenant may have at a time, so that no tenant uses up shared capacity. A cap of 0 means no limit.
type Caps struct {
	PendingPushes    int // pushes that are scheduled or being sent
	RecipientsPerDay int // distinct recipients of pushes whose send time lies on one UTC day
}

// OwnCaps are the caps that the operator has set for one tenant; nil: the general cap applies.
type OwnCaps struct{ PendingPushes, RecipientsPerDay, AudienceBytes *int }

// Bytes returns the maximum size of the tenant's audiences, by default the general maximum usual; 0: unlimited.
func (own OwnCaps) Bytes(usual int) int {
	if own.AudienceBytes != nil {
		return *own.AudienceBytes
	}
	return usual
}

// Over returns the caps of a tenant: its own ones, and usual where it has none.
func (own OwnCaps) Over(usual Caps) Caps {
	if own.PendingPushes != nil {
		usual.PendingPushes = *own.PendingPushes
	}
	if own.RecipientsPerDay != nil {
		usual.RecipientsPerDay = *own.RecipientsPerDay
	}
	return usual
}
