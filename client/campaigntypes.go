package client

import "time"

// Audience is what became of the lines of an audience.
type Audience struct {
	Rows       int64       `json:"rows"`
	Accepted   int64       `json:"accepted"`
	Duplicates int64       `json:"duplicates"`
	Rejected   int64       `json:"rejected"`
	Errors     []LineError `json:"errors"`
}

// LineError is what is wrong with a line.
type LineError struct {
	Line    int64  `json:"line"`
	Message string `json:"message"`
}

// Preview has rendered messages.
type Preview struct {
	Messages []PreviewMessage `json:"messages"`
}

// PreviewMessage is the message of a recipient, or why there is none.
type PreviewMessage struct {
	Recipient string         `json:"recipient"`
	Line      int64          `json:"line"`
	Message   map[string]any `json:"message"`
	Error     string         `json:"error"`
}

// Simulation is what the start of a campaign would do.
type Simulation struct {
	Recipients   int64            `json:"recipients"`
	Accepted     int64            `json:"accepted"`
	Deferred     int64            `json:"deferred"`
	Refused      int64            `json:"refused"`
	OptedOut     int64            `json:"opted_out"`
	Invalid      int64            `json:"invalid"`
	ByRule       map[string]int64 `json:"by_rule"`
	Delays       []Delay          `json:"delays"`
	CollidesWith []Collision      `json:"collides_with"`
	BetterStarts []Start          `json:"better_starts"`
}

// Delay counts those who are deferred by so long.
type Delay struct {
	UpToSeconds int64 `json:"up_to_seconds"` // 0: longer
	Recipients  int64 `json:"recipients"`
}

// Collision is another campaign whose bookings are in the way.
type Collision struct {
	Campaign   string `json:"campaign"`
	Name       string `json:"name"`
	Recipients int64  `json:"recipients"`
}

// Start is another time to start.
type Start struct {
	SendAt   time.Time `json:"send_at"`
	Accepted int64     `json:"accepted"`
}

// SimulatedRecipient is what the start of a campaign would do with one recipient.
type SimulatedRecipient struct {
	Recipient string    `json:"recipient"`
	Outcome   string    `json:"outcome"`
	SendAt    time.Time `json:"send_at"`
	Reason    string    `json:"reason"`
}

// CampaignRecipient is a recipient of a campaign, with what became of it.
type CampaignRecipient struct {
	Recipient string    `json:"recipient"`
	Line      int64     `json:"line"`
	Outcome   string    `json:"outcome"`
	Push      string    `json:"push"`
	SendAt    time.Time `json:"send_at"`
	Reason    string    `json:"reason"`
	Rules     []string  `json:"rules"`
}

// CampaignRecipientsPage is a page of them.
type CampaignRecipientsPage struct {
	Recipients    []CampaignRecipient `json:"recipients"`
	NextPageToken string              `json:"next_page_token"`
}
