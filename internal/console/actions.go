package console

import (
	"cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// actionWords are the actions of the audit log as people say them.
var actionWords = map[push.Action]string{
	push.ActKeyCreate: "made an API key", push.ActKeyRotate: "made the successor of an API key", push.ActKeyRevoke: "revoked an API key",
	push.ActUserCreate: "made a user", push.ActUserChange: "changed a user", push.ActUserDelete: "deleted a user",
	push.ActUserLink: "made a link to set a password", push.ActUserEndSessions: "signed a user out",
	push.ActWebhookCreate: "made a webhook", push.ActWebhookDelete: "deleted a webhook", push.ActWebhookEnable: "enabled a webhook",
	push.ActWebhookRotateSecret: "gave a webhook another secret", push.ActWebhookTest: "tested a webhook", push.ActWebhookReplay: "sent events of a webhook again",
	push.ActPolicyChange: "changed the policy", push.ActPolicyReset: "went back to the operator’s policy",
	push.ActScheduleCreate: "made a schedule", push.ActScheduleChange: "changed a schedule", push.ActScheduleDelete: "deleted a schedule",
	push.ActCampaignCreate: "made a campaign", push.ActCampaignChange: "changed a campaign", push.ActCampaignAudience: "uploaded the audience of a campaign",
	push.ActCampaignDelete: "deleted a campaign", push.ActCampaignStart: "started a campaign", push.ActCampaignPause: "paused a campaign",
	push.ActCampaignResume: "had a campaign go on", push.ActCampaignCancel: "canceled a campaign",
	push.ActRecipientPut: "described a recipient", push.ActRecipientImport: "imported recipients", push.ActRecipientErase: "erased a recipient",
	push.ActPushCancel: "canceled a push", push.ActPushMove: "moved a push", push.ActPushRetry: "retried a push",
	push.ActBulkCreate: "began to change many pushes", push.ActBulkCancel: "stopped changing many pushes",
	push.ActTenantCap: "changed the caps", push.ActTenantRename: "renamed the tenant",
}

// ActionWords says what was done. What has no words is named as the API does.
func (p *page) ActionWords(action string) string {
	return cmp.Or(actionWords[push.Action(action)], action)
}
