package webhook

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
)

// Webhook is an endpoint of a tenant that receives events.
type Webhook struct {
	ID             uuid.UUID
	Tenant         uuid.UUID
	URL            string
	Events         []Event
	CreatedAt      time.Time
	Failures       int       // since the last success
	FailingSince   time.Time // zero: the last attempt succeeded, or there was none
	DisabledAt     time.Time // when it was switched off; zero: it is on
	DisabledReason string
}

// DeliveryStatus is the state of the delivery of an event.
type DeliveryStatus string

// The states of a delivery. The last two are final, except for a replay.
const (
	Waiting   DeliveryStatus = "waiting"
	Sending   DeliveryStatus = "sending"
	Delivered DeliveryStatus = "delivered"
	Failed    DeliveryStatus = "failed" // given up
)

// DeliveryStatuses lists the states, in the order of life.
var DeliveryStatuses = []DeliveryStatus{Waiting, Sending, Delivered, Failed}

// Delivery is the delivery of an event to a webhook.
type Delivery struct {
	ID         uuid.UUID
	Seq        int64     // grows with every event
	Push       uuid.UUID // Nil: the event concerns no push
	Event      Event
	Payload    json.RawMessage
	Status     DeliveryStatus
	Attempts   int
	NextAt     time.Time // for Waiting: the earliest time of the next attempt
	LastStatus int       // HTTP status of the last answer; 0: none
	LastError  string    // why the last attempt failed
	CreatedAt  time.Time
	EndedAt    time.Time // zero until it ends
}

// DeliveryFilter selects deliveries of a webhook. Zero fields select all.
type DeliveryFilter struct {
	Status DeliveryStatus
	Event  Event
	Push   uuid.UUID
}

// DeliveryPage is a page of deliveries. Next is the Seq before which the next page begins; 0: this is the last one.
type DeliveryPage struct {
	Deliveries []Delivery
	Next       int64
}

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

	EventSendingPaused  Event = "sending.paused"  // a pause of the tenant or of the operator has begun, or has been changed
	EventSendingResumed Event = "sending.resumed" // a pause has ended
)

// EventTest is sent to a webhook only at its tenant's request.
const EventTest Event = "webhook.test"

// Events lists the events that a webhook can subscribe to.
var Events = []Event{
	EventScheduled, EventDeferred, EventSent, EventFailed, EventExpired, EventCanceled, EventNearLimit,
	EventCampaignStarted, EventCampaignProgress, EventCampaignFinished, EventChannelUnhealthy,
	EventSendingPaused, EventSendingResumed,
}

var (
	// ErrTooMany: the tenant has reached the maximum number of webhooks.
	ErrTooMany = errors.New("the tenant already has the maximum number of webhooks")
	// ErrOff: the webhook is switched off and receives no events.
	ErrOff = errors.New("the webhook is switched off")
)
