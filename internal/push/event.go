package push

// Event is something that a tenant's webhooks are told.
type Event string

// The events that a webhook can ask for.
const (
	EventScheduled Event = "push.scheduled"   // booked, or moved by the tenant to another send time
	EventDeferred  Event = "push.deferred"    // put off by the recipient's actual sends, or to be tried again
	EventSent      Event = "push.sent"        //
	EventFailed    Event = "push.failed"      //
	EventExpired   Event = "push.expired"     //
	EventCanceled  Event = "push.canceled"    //
	EventNearLimit Event = "quota.near_limit" // a push was booked, and a rule is 80 % used up around it
)

// EventTest is sent to a webhook when its tenant asks for it, and only then.
const EventTest Event = "webhook.test"

// Events lists the events that a webhook can ask for.
var Events = []Event{EventScheduled, EventDeferred, EventSent, EventFailed, EventExpired, EventCanceled, EventNearLimit}
