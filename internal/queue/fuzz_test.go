package queue

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// FuzzWakeUp holds that a payload is refused, or is a wake-up for some push which is the same when it is written again;
// and that no wake-up is turned into a queue that does not exist.
func FuzzWakeUp(f *testing.F) {
	real, err := json.Marshal(push.WakeUp{Push: uuid.MustParse("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"), Gen: 1, RecipientKey: -5, At: time.Unix(1e9, 0).UTC(), In: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(real)
	for _, seed := range []string{``, `null`, `{}`, `[]`, `{"Push":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}`, `{"Push":"x","Gen":1}`, `{"Push":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01","Gen":1,"At":"9999-12-31T23:59:59Z","In":99}`, `{"Gen":1e99}`} {
		f.Add([]byte(seed))
	}
	q := &Queue{shards: 3}
	f.Fuzz(func(t *testing.T, payload []byte) {
		w, err := readWakeUp(payload)
		if err != nil {
			if w != (push.WakeUp{}) {
				t.Errorf("refused, but read: %+v", w)
			}
			return
		}
		if w.Push == uuid.Nil || w.Gen < 1 || w.In != 0 {
			t.Errorf("accepted: %+v", w)
		}
		if shard := q.shard(w); shard != "push-0" && shard != "push-1" && shard != "push-2" {
			t.Errorf("shard %q", shard)
		}
		text, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := readWakeUp(text); err != nil || again.Push != w.Push || again.Gen != w.Gen || again.RecipientKey != w.RecipientKey || !again.At.Equal(w.At) {
			t.Errorf("%+v, written again %+v (%v)", w, again, err)
		}
	})
}
