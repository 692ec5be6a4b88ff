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

	EventCampaignStarted  Event = "campaign.started"
	EventCampaignProgress Event = "campaign.progress" // another tenth of the recipients has come to an end
	EventCampaignFinished Event = "campaign.finished" // all have

	EventChannelUnhealthy Event = "channel.unhealthy" // a channel refuses too much of the tenant's, or its provider is down
)

// EventTest is sent to a webhook when its tenant asks for it, and only then.
const EventTest Event = "webhook.test"

// Events lists the events that a webhook can ask for.
var Events = []Event{
	EventScheduled, EventDeferred, EventSent, EventFailed, EventExpired, EventCanceled, EventNearLimit,
	EventCampaignStarted, EventCampaignProgress, EventCampaignFinished, EventChannelUnhealthy,
}
