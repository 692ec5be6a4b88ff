package receipt

// sesAutomaticReply is a bounce without a status of a recipient: SES reports automatic replies so.
const sesAutomaticReply = "Transient/General without status"

// sesCodes returns the events of Amazon SES: bounces with their type and subtype, complaints with the type of the
// feedback.
//
// https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html#bounce-types
func sesCodes() map[string]meaning {
	return map[string]meaning{
		"Delivery": {"the recipient's mail server took it", delivered},

		"Permanent/General":                  {"the recipient's mail server refuses it permanently", hard},
		"Permanent/NoEmail":                  {"there is no such mailbox", hard},
		"Permanent/Suppressed":               {"the address has bounced before, and is on the list of SES", hard},
		"Permanent/OnAccountSuppressionList": {"the address is on the list of the account", hard},

		"Transient/General":               {"the recipient's mail server refuses it for now", soft},
		"Transient/MailboxFull":           {"the mailbox is full", soft},
		"Transient/MessageTooLarge":       {"the message is too large", soft},
		"Transient/ContentRejected":       {"the recipient's mail server refuses the content", soft},
		"Transient/AttachmentRejected":    {"the recipient's mail server refuses an attachment", soft},
		"Transient/CustomTimeoutExceeded": {"it could not be delivered in time", soft},
		"Undetermined/Undetermined":       {"it bounced for an unknown reason", soft},

		"Complaint":              {"the recipient has marked it as spam", complained},
		"Complaint/abuse":        {"the recipient has marked it as spam", complained},
		"Complaint/fraud":        {"it was reported as fraud", complained},
		"Complaint/virus":        {"it was reported for a virus", complained},
		"Complaint/other":        {"the recipient has complained", complained},
		"Complaint/auth-failure": {"a report about authentication, of no recipient", ignored},
		"Complaint/not-spam":     {"the recipient has marked it as no spam", ignored},

		"Complaint/OnAccountSuppressionList": {"the recipient has complained before, and is on the list of the account", dropComplained},
		"Permanent/UnsubscribedRecipient":    {"the recipient has unsubscribed at SES", dropUnsubscribed},

		"Reject":            {"SES has found a virus", undelivered},
		"Rendering Failure": {"SES could not render its template", undelivered},
		sesAutomaticReply:   {"an automatic reply, such as out of office", ignored},
		"DeliveryDelay":     {"it is late", ignored},
	}
}

// sesMeaning returns the meaning of an event. An unknown bounce is soft, and any complaint is one.
func sesMeaning(kind, code string) meaning {
	m, known := sesCodes()[code]
	switch {
	case known:
		return m
	case kind == "Bounce":
		return meaning{"it bounced for an unknown reason", soft}
	case kind == "Complaint":
		return meaning{"the recipient has complained", complained}
	}
	return meaning{}
}
