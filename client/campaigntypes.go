package client

import "time"

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
