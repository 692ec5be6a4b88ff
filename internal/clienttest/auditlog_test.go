package clienttest

import (
	"io"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestClient_AuditLog lists what this client has done.
func TestClient_AuditLog(t *testing.T) {
	t.Parallel()
	c := newClient()
	made, err := c.Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "sale", Message: client.Message{"body": "Hi"}})
	if err != nil {
		t.Fatal(err)
	}
	f, n := client.AuditLogOptions{Target: made.ID, Action: "campaign.create", ActorType: "key"}, 0
	for entry, err := range c.Records.ListAuditLog(t.Context(), f) {
		if n++; err != nil || entry.Target.Type != "campaign" || entry.Actor.ID == "" || entry.Difference["name"] == nil {
			t.Errorf("%+v, %v", entry, err)
		}
	}
	lines, err := c.Records.ExportAuditLog(t.Context(), client.ExportAuditLogOptions{Target: f.Target, Action: f.Action, ActorType: f.ActorType}, client.NDJSON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lines.Close() }()
	text, err := io.ReadAll(lines)
	if err != nil || n != 1 || strings.Count(string(text), made.ID) != 1 {
		t.Errorf("%d in the list; %s, %v", n, text, err)
	}
}
