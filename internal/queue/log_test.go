package queue

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogger_Complaints: one a second passes, with the number of those held back; what is no complaint always does.
func TestLogger_Complaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		l := &logger{log: slog.New(slog.NewTextHandler(&text, nil))}
		for range 25 {
			l.Error("cannot dequeue: ", "refused")
			l.Warn("cannot forward")
			time.Sleep(100 * time.Millisecond)
		}
		l.Info("fine")
		l.Info("fine")
		got := strings.Split(strings.TrimSpace(text.String()), "\n")
		if len(got) != 5 {
			t.Fatalf("logged:\n%s", text.String())
		}
		for i, want := range []string{"level=ERROR", "held_back=19", "held_back=19", "level=INFO", "level=INFO"} {
			if !strings.Contains(got[i], want) || strings.Contains(got[i], "held_back") != strings.HasPrefix(want, "held_back") {
				t.Errorf("line %d: %s, want %s", i, got[i], want)
			}
		}
		if want := `msg="asynq: cannot dequeue: refused"`; !strings.Contains(got[0], want) {
			t.Errorf("%s, want %s", got[0], want)
		}
	})
}
