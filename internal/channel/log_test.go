package channel

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

func TestLog_Send(t *testing.T) {
	var out bytes.Buffer
	l := NewLog(slog.New(slog.NewTextHandler(&out, nil)))
	got := l.Send(t.Context(), testPush(), 2)
	if diff := cmp.Diff(Result{Outcome: push.Delivered}, got, notWhen); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if !strings.HasSuffix(out.String(), " push=01900000-0000-7000-8000-000000000042 channel=push attempt=2\n") {
		t.Errorf("line %q", out.String())
	}
	for _, mark := range marks() {
		if strings.Contains(out.String(), mark) {
			t.Errorf("%s leaked: %s", mark, out.String())
		}
	}
}
