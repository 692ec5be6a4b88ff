package push

// Status is where a push stands.
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
	When     string // what happens, in one phrase
}

// Arrows is the state machine. The store's updates, docs/states.md and the tests are held to it.
var Arrows = []Arrow{
	{Scheduled, Sending, "a worker claims it"},
	{Sending, Sent, "the provider took it"},
	{Sending, Failed, "refused for good, or attempts or time are used up"},
	{Sending, Scheduled, "it will be tried again"},
	{Scheduled, Canceled, "the tenant cancels it"},
	{Scheduled, Expired, "its expiry passed before it could be sent"},
	{Scheduled, Sent, "a provider's late answer says that an attempt given up for lost was delivered"},
}
