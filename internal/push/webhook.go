package push

import (
	"encoding/json"
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
	DeliveryWaiting   DeliveryStatus = "waiting"
	DeliverySending   DeliveryStatus = "sending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed" // given up
)

// DeliveryStatuses lists the states, in the order of life.
var DeliveryStatuses = []DeliveryStatus{DeliveryWaiting, DeliverySending, DeliveryDelivered, DeliveryFailed}

// Delivery is the delivery of an event to a webhook.
type Delivery struct {
	ID         uuid.UUID
	Seq        int64     // grows with every event
	Push       uuid.UUID // Nil: the event concerns no push
	Event      Event
	Payload    json.RawMessage
	Status     DeliveryStatus
	Attempts   int
	NextAt     time.Time // for DeliveryWaiting: the earliest time of the next attempt
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
