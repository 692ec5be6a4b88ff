package system

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/health"
)

// TestNow_Words has words for each state of the API, and shows the worst state first.
func TestNow_Words(t *testing.T) {
	t.Parallel()
	states := func(field string) []string {
		f, _ := reflect.TypeFor[health.Report]().FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), ",")
	}
	for _, state := range states("Postgres") {
		if postgresWords[client.StatusPostgres(state)] == "" {
			t.Errorf("Postgres %s has no words", state)
		}
	}
	for _, state := range states("Redis") {
		if redisWords[client.StatusRedis(state)] == "" {
			t.Errorf("Redis %s has no words", state)
		}
	}
	if len(queueWords) != 3 || len(channelWords) != 5 {
		t.Error("a state lacks its words")
	}
	well := client.Status{Status: client.StatusStatusReady, Postgres: client.StatusPostgresOk, Redis: client.StatusRedisOk, Queue: client.StatusQueueOk, Workers: 1}
	for want, change := range map[string]func(*nowView){
		"All systems normal":               func(*nowView) {},
		"does not respond":                 func(v *nowView) { v.Unknown = "unavailable" },
		"is stopping":                      func(v *nowView) { v.Status.Status = client.StatusStatusStopping },
		"right now: Postgres is a standby": func(v *nowView) { v.Postgres, v.Redis = client.StatusPostgresReadOnly, client.StatusRedisUnreachable },
		"no worker":                        func(v *nowView) { v.Workers, v.Queue = 0, client.StatusQueueOverdue },
		"overdue":                          func(v *nowView) { v.Queue, v.Redis = client.StatusQueueOverdue, client.StatusRedisUnreachable },
		"sms is not sending": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "push", State: client.ChannelStateUnknown}, {Name: "sms", State: client.ChannelStateFailing, Until: time.Now()}}
		},
		"through sms fail and are retried": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "sms", State: client.ChannelStateFailing}}
		},
		"through sms are refused permanently": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "push", State: client.ChannelStateFailing}, {Name: "sms", State: client.ChannelStateRejecting}}
		},
		"push, mail and sms are not sending": func(v *nowView) {
			for _, name := range []string{"push", "mail", "sms"} {
				v.Channels = append(v.Channels, client.Channel{Name: name, State: client.ChannelStatePaused})
			}
		},
		"for now: Postgres has too few locks":     func(v *nowView) { v.Postgres, v.Redis = client.StatusPostgresFewLocks, client.StatusRedisEvicts },
		"for now: Redis may evict":                func(v *nowView) { v.Redis = client.StatusRedisEvicts },
		"a little slower: Redis is not reachable": func(v *nowView) { v.Redis = client.StatusRedisUnreachable },
	} {
		v := &nowView{Status: well}
		change(v)
		if got := v.Summary(); !strings.Contains(got.Sentence, want) || (got.Look == "ok") != (want == "All systems normal") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// TestNow_Servers: what is said of a server begins so that its name can stand there.
func TestNow_Servers(t *testing.T) {
	t.Parallel()
	for _, words := range slices.Concat(slices.Collect(maps.Values(postgresWords)), slices.Collect(maps.Values(redisWords))) {
		if !strings.HasPrefix(words, "It ") {
			t.Error(words)
		}
	}
}

// TestNow_EveryMinute: minutes without an attempt are there as well, and a line has a gap where nothing was delivered.
func TestNow_EveryMinute(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 9, 0, 30, 0, time.UTC)
	minutes := everyMinute(client.Status{AsOf: at.Add(3 * time.Minute), Attempts: client.RecentAttempts{Since: at}, Minutes: []client.StatusMinute{{At: at.Truncate(time.Minute).Add(time.Minute), Delivered: 4, LateMsP50: 250}}})
	if len(minutes) != 4 || slices.ContainsFunc(minutes, func(m client.StatusMinute) bool { return m.At.Second() != 0 }) {
		t.Fatalf("%+v", minutes)
	}
	got, err := seriesOf(minutes)
	if want := `{"at":[1795510800,1795510860,1795510920,1795510980],"delivered":[0,4,0,0],"refused":[0,0,0,0],"unknown":[0,0,0,0],"p50":[null,0.25,null,null],"p99":[null,0,null,null]}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
