package schedule

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// TestKeptRefusal_Text: what is written is read as it was, also by encoding/json's rules for strange texts.
func TestKeptRefusal_Text(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 59, 59, 123456789, time.UTC)
	for _, k := range []keptRefusal{
		{Event: Event{At: at, Kind: Refused, Channel: "push", SendAt: at.Add(time.Hour), Reason: "opted_out"}, Name: "opted_out"},
		{
			Event: Event{At: at, Kind: Refused, Channel: `"push"`, Category: "a\\b\n\u2028<é>\x00", SendAt: at.Truncate(time.Second), Reason: "rules"},
			Name:  "quota-exceeded", Rules: []string{"per-day", `"night"`}, Conflicts: []conflict{{uuid.New(), at}, {uuid.New(), at.Add(time.Second)}},
		},
	} {
		var read, usual keptRefusal
		if err := json.Unmarshal(k.text(), &read); err != nil {
			t.Fatalf("%s: %v", k.text(), err)
		}
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &usual); err != nil {
			t.Fatal(err)
		}
		read.Rules, read.Conflicts = append([]string(nil), read.Rules...), append([]conflict(nil), read.Conflicts...)
		if diff := cmp.Diff(usual, read); diff != "" {
			t.Errorf("%s: %s", k.text(), diff)
		}
	}
}

// TestKeptRefusal_Fields: a field that is added to a refusal is to be written, too.
func TestKeptRefusal_Fields(t *testing.T) {
	k := keptRefusal{
		Event: Event{At: time.Now(), Kind: Refused, Channel: "push", Category: "news", SendAt: time.Now(), Reason: "rules"},
		Name:  "quota-exceeded", Rules: []string{"per-day"}, Conflicts: []conflict{{uuid.New(), time.Now()}},
	}
	fields := func(text []byte) map[string]any {
		all := map[string]any{}
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return all
	}
	usual, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	want := fields(usual)
	delete(want, "Push") // a refusal has neither
	delete(want, "Campaign")
	if diff := cmp.Diff(want, fields(k.text())); diff != "" {
		t.Error(diff)
	}
}
