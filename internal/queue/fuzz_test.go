package queue

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// FuzzWakeUp holds that a payload is refused, or is a wake-up for some lane which is the same when it is written again;
// and that no wake-up is turned into a queue that does not exist.
func FuzzWakeUp(f *testing.F) {
	f.Add(writeWakeUp(push.WakeUp{Lane: push.Lane{First: 64, Last: 127}, At: time.Unix(1e9, 0), Part: 3}))
	for _, seed := range []string{``, `null`, `{}`, `[]`, `{"first":0,"last":0,"at":1}`, `{"first":0,"last":256,"at":1,"part":0}`, `{"first":9,"last":8,"at":1,"part":0}`,
		`{"first":-1,"last":8,"at":1,"part":0}`, `{"first":1,"last":8,"at":1,"part":-1}`, `{"first":1,"last":8,"at":9223372036854775807,"part":0}`, `{"first":1e99}`, `{"first":"0"}`} {
		f.Add([]byte(seed))
	}
	q := &Queue{queues: 3}
	f.Fuzz(func(t *testing.T, payload []byte) {
		w, err := readWakeUp(payload)
		if err != nil {
			if w != (push.WakeUp{}) {
				t.Errorf("refused, but read: %+v", w)
			}
			return
		}
		if w.Lane.First < 0 || w.Lane.Last < w.Lane.First || w.Lane.Last > 255 || w.Part < 0 || w.In != 0 {
			t.Errorf("accepted: %+v", w)
		}
		if name := q.of(w.Lane); name != "push-lane0" && name != "push-lane1" && name != "push-lane2" {
			t.Errorf("queue %q", name)
		}
		text := writeWakeUp(w)
		if again, err := readWakeUp(text); err != nil || again != w || !json.Valid(text) {
			t.Errorf("%+v, written again %+v (%v)", w, again, err)
		}
	})
}
