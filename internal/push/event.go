package push

// Event is the type of an event that a tenant's webhooks receive.
type Event string

// The events that a webhook can subscribe to.
const (
	EventScheduled Event = "push.scheduled"   // booked, or moved by the tenant to another send time
	EventDeferred  Event = "push.deferred"    // put off because of the recipient's actual sends, or to be tried again
	EventSent      Event = "push.sent"        //
	EventFailed    Event = "push.failed"      //
	EventExpired   Event = "push.expired"     //
	EventCanceled  Event = "push.canceled"    //
	EventNearLimit Event = "quota.near_limit" // a push was booked, and a rule is 80 % used around it

	EventCampaignStarted  Event = "campaign.started"
	EventCampaignProgress Event = "campaign.progress" // another tenth of the recipients has ended
	EventCampaignFinished Event = "campaign.finished" // all recipients have ended

	EventChannelUnhealthy Event = "channel.unhealthy" // a channel refuses too many of the tenant's pushes, or its provider is down
)

// EventTest is sent to a webhook only at its tenant's request.
const EventTest Event = "webhook.test"

// Events lists the events that a webhook can subscribe to.
var Events = []Event{
	EventScheduled, EventDeferred, EventSent, EventFailed, EventExpired, EventCanceled, EventNearLimit,
	EventCampaignStarted, EventCampaignProgress, EventCampaignFinished, EventChannelUnhealthy,
}
