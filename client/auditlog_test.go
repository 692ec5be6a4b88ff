package client_test

import (
	"io"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestClient_AuditLog lists what this client has done.
func TestClient_AuditLog(t *testing.T) {
	c := newClient()
	made, err := c.CreateCampaign(t.Context(), "", client.NewCampaign{Name: "sale", Message: client.Message{"body": "Hi"}})
	if err != nil {
		t.Fatal(err)
	}
	f, n := client.LogFilter{Target: made.ID, Action: "campaign.create", ActorType: "key"}, 0
	for entry, err := range c.AuditLog(t.Context(), f) {
		if n++; err != nil || entry.Target.Type != "campaign" || entry.Actor.ID == "" || entry.Difference["name"] == nil {
			t.Errorf("%+v, %v", entry, err)
		}
	}
	lines, err := c.ExportAuditLog(t.Context(), f, client.NDJSON)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lines.Close() }()
	text, err := io.ReadAll(lines)
	if err != nil || n != 1 || strings.Count(string(text), made.ID) != 1 {
		t.Errorf("%d in the list; %s, %v", n, text, err)
	}
}
