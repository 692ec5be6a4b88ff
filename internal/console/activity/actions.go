package activity

import (
	"cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// actionWords describes the actions of the audit log for people.
var actionWords = map[push.Action]string{
	push.ActKeyCreate: "created an API key", push.ActKeyRotate: "rotated an API key", push.ActKeyRevoke: "revoked an API key",
	push.ActUserCreate: "created a user", push.ActUserChange: "changed a user", push.ActUserDelete: "deleted a user",
	push.ActUserLink: "created a link to set a password", push.ActUserEndSessions: "signed a user out",
	push.ActWebhookCreate: "created a webhook", push.ActWebhookDelete: "deleted a webhook", push.ActWebhookEnable: "enabled a webhook",
	push.ActWebhookRotateSecret: "rotated the secret of a webhook", push.ActWebhookTest: "tested a webhook", push.ActWebhookReplay: "resent events of a webhook",
	push.ActPolicyChange: "changed the policy", push.ActPolicyReset: "reset the policy to the default",
	push.ActScheduleCreate: "created a schedule", push.ActScheduleChange: "changed a schedule", push.ActScheduleDelete: "deleted a schedule",
	push.ActCampaignCreate: "created a campaign", push.ActCampaignChange: "changed a campaign", push.ActCampaignAudience: "uploaded the audience of a campaign",
	push.ActCampaignDelete: "deleted a campaign", push.ActCampaignStart: "started a campaign", push.ActCampaignPause: "paused a campaign",
	push.ActCampaignResume: "resumed a campaign", push.ActCampaignCancel: "canceled a campaign",
	push.ActRecipientPut: "changed a recipient", push.ActRecipientImport: "imported recipients", push.ActRecipientErase: "erased a recipient",
	push.ActPushCancel: "canceled a message", push.ActPushMove: "moved a message", push.ActPushRetry: "retried a message",
	push.ActBulkCreate: "started a bulk change", push.ActBulkCancel: "stopped a bulk change",
	push.ActTenantCap: "changed the caps", push.ActTenantRename: "renamed the tenant",
}

// actionName describes an action, or returns its name in the API if it has no description.
func actionName(action string) string {
	return cmp.Or(actionWords[push.Action(action)], action)
}
