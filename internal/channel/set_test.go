package channel

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

func entry(name string) Entry {
	return Entry{Name: name, Channel: NewLog(slog.New(slog.DiscardHandler)), Retry: push.Retry{MaxAttempts: 3}}
}

func TestSet(t *testing.T) {
	s, err := NewSet(entry("push"), entry("log"), entry("email"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"push", "log", "email"}, s.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if e, ok := s.Get("log"); !ok || e.Name != "log" || e.Retry.MaxAttempts != 3 {
		t.Errorf("log: %+v %t", e, ok)
	}
	if _, ok := s.Get("sms"); ok {
		t.Error("there is a channel that was not configured")
	}
}

func TestSet_Bad(t *testing.T) {
	noAttempts, noChannel := entry("push"), entry("push")
	noAttempts.Retry.MaxAttempts = 0
	noChannel.Channel = nil
	for name, entries := range map[string][]Entry{
		"empty":         nil,
		"no name":       {entry("")},
		"same name":     {entry("push"), entry("push")},
		"no attempts":   {noAttempts},
		"nothing there": {noChannel},
	} {
		if _, err := NewSet(entries...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
