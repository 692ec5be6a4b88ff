package schedule

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// TestKeptRefusal_Text: a refusal is read as it was written, also with unusual strings.
func TestKeptRefusal_Text(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 59, 59, 123456789, time.UTC)
	for _, k := range []keptRefusal{
		{Event: Event{At: at, Kind: Refused, Channel: "push", SendAt: at.Add(time.Hour), Reason: "opted_out"}, Name: "opted_out", Rules: []string{}, Conflicts: []conflict{}},
		exampleKept(),
	} {
		var read keptRefusal
		if err := json.Unmarshal(k.text(), &read); err != nil {
			t.Fatalf("%s: %v", k.text(), err)
		}
		if diff := cmp.Diff(k, read); diff != "" {
			t.Errorf("%s: %s", k.text(), diff)
		}
	}
	want := `{"At":"0001-01-01T00:00:00Z","Kind":"","Channel":"�","Category":"","SendAt":"0001-01-01T00:00:00Z","Reason":"","Name":"","Rules":[],"Conflicts":[]}`
	if got := string((&keptRefusal{Event: Event{Channel: "\xff"}}).text()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func exampleKept() keptRefusal {
	at := time.Date(2026, 12, 1, 9, 59, 59, 123456789, time.UTC)
	return keptRefusal{
		Event: Event{At: at, Kind: Refused, Channel: `"push"`, Category: "a\\b\n\u2028<é>\x00", SendAt: at.Truncate(time.Second), Reason: "rules"},
		Name:  "quota-exceeded", Rules: []string{"per-day", `"night"`}, Conflicts: []conflict{{uuid.New(), at}, {uuid.New(), at.Add(time.Second)}},
	}
}

// BenchmarkKeptRefusal encodes a refusal by text, and by encoding/json.
func BenchmarkKeptRefusal(b *testing.B) {
	k := exampleKept()
	b.Run("version 2", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k.text()
		}
	})
	b.Run("version 1", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(&k); err != nil {
				b.Fatal(err)
			}
		}
	})
}
