package push

// Status is the state of a push.
type Status string

// The states of a push. The last four are final.
const (
	Scheduled Status = "scheduled"
	Sending   Status = "sending"
	Sent      Status = "sent"
	Failed    Status = "failed"
	Canceled  Status = "canceled"
	Expired   Status = "expired"
)

// Statuses lists every state, in the order of life.
var Statuses = []Status{Scheduled, Sending, Sent, Failed, Canceled, Expired}

// Arrow is one legal change of state.
type Arrow struct {
	From, To Status
	When     string // the event, in one phrase
}

// Arrows is the state machine. The store's updates, docs/states.md and the tests follow it.
var Arrows = []Arrow{
	{Scheduled, Sending, "a worker claims it"},
	{Sending, Sent, "the provider accepted it"},
	{Sending, Failed, "refused permanently, or attempts or time are used up"},
	{Sending, Scheduled, "it will be tried again"},
	{Scheduled, Canceled, "the tenant cancels it"},
	{Scheduled, Expired, "its expiry passed before it could be sent"},
	{Scheduled, Failed, "its address was suppressed when it became due"},
	{Scheduled, Sent, "a late answer of the provider reports that an attempt counted as lost was delivered"},
}
