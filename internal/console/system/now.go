package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
)

// nowEvery is the interval between updates of the page.
const nowEvery = 3 * time.Second

// nowView is the current status.
type nowView struct {
	client.Status
	Channels []client.Channel
	Stopped  []client.Pause // of sending; empty: there is none, or the visitor must not see them
	Unknown  string         // why it cannot be said; empty: it can
	Minutes  []client.StatusMinute
	Series   string // the same as JSON, for the lines
}

// showNow shows how things stand, and follows them.
func showNow(p *frame.Page) error {
	view, err := standing(p)
	if err != nil {
		return err
	}
	return p.Show("now", "Now", view)
}

// streamNow streams the part of the page that changes.
func streamNow(p *frame.Page) error {
	return p.Stream("now", "live", nowEvery, func() (any, error) { return standing(p) })
}

// standing asks how things stand. That Postgres does not answer is one of the answers.
func standing(p *frame.Page) (*nowView, error) {
	p.LookAgain()
	view := &nowView{Stopped: p.Stopped.All()}
	status, err := p.API.Records.Status(p.Context())
	if err == nil && p.May(push.ScopeRead) {
		var report client.ChannelReport
		report, err = p.API.Channels.List(p.Context())
		view.Channels = report.Channels
	}
	var problem *client.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable:
		view.Unknown = frame.Words(problem.Detail)
		return view, nil
	case err != nil:
		return nil, err
	}
	status.AsOf, status.Attempts.Since = status.AsOf.Truncate(time.Second), status.Attempts.Since.Truncate(time.Second) // for people
	view.Status = status
	view.Minutes = everyMinute(status)
	view.Series, err = seriesOf(view.Minutes)
	return view, err
}

// everyMinute are the minutes since which attempts are counted, also those without any.
func everyMinute(s client.Status) (all []client.StatusMinute) {
	known := map[int64]client.StatusMinute{}
	for _, m := range s.Minutes {
		known[m.At.Unix()] = m
	}
	for at := s.Attempts.Since.Truncate(time.Minute); !at.After(s.AsOf); at = at.Add(time.Minute) {
		m := known[at.Unix()]
		m.At = at
		all = append(all, m)
	}
	return all
}

// series are the values of lines, as uPlot takes them.
type series struct {
	At        []int64    `json:"at"` // Unix seconds
	Delivered []int64    `json:"delivered"`
	Refused   []int64    `json:"refused"`
	Unknown   []int64    `json:"unknown"`
	LateP50   []*float64 `json:"p50"` // seconds; null: none was delivered
	LateP99   []*float64 `json:"p99"`
}

func seriesOf(minutes []client.StatusMinute) (string, error) {
	var s series
	for _, m := range minutes {
		s.At = append(s.At, m.At.Unix())
		s.Delivered, s.Refused, s.Unknown = append(s.Delivered, m.Delivered), append(s.Refused, m.Refused), append(s.Unknown, m.Unknown)
		var p50, p99 *float64
		if m.Delivered > 0 {
			p50, p99 = new(m.LateMsP50/1000), new(m.LateMsP99/1000)
		}
		s.LateP50, s.LateP99 = append(s.LateP50, p50), append(s.LateP99, p99)
	}
	text, err := json.Marshal(s)
	return string(text), err
}

// Late is a time that something was late, in words.
func (v *nowView) Late(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	if d >= time.Second && d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return duration.Words(d)
}

// Latest are the minutes with attempts, the latest first, for the table.
func (v *nowView) Latest() (all []client.StatusMinute) {
	for i := len(v.Minutes) - 1; i >= 0; i-- {
		if m := v.Minutes[i]; m.Delivered+m.Refused+m.Unknown > 0 {
			all = append(all, m)
		}
	}
	return all
}

// state is the state of the servers and the channels in a sentence, and whether that is well.
func (v *nowView) state() summary {
	switch {
	case v.Unknown != "":
		return summary{"open", "Status unknown: the database does not respond. Accepted messages are safe and will be sent when it responds again."}
	case v.Status.Status == client.StatusStatusStopping:
		return summary{"paused", "This server is stopping and another one takes over. Reload the page in a moment."}
	case v.Postgres != client.StatusPostgresOk && !poor[v.Postgres]:
		return summary{"open", "Nothing is accepted or sent right now: " + about("Postgres", postgresWords[v.Postgres])}
	case v.Workers == 0:
		return summary{"open", "Nothing is sent right now: no worker has reported in the last 30 seconds."}
	case v.Queue == client.StatusQueueOverdue:
		return summary{"paused", "Messages are overdue. Check the channels below for the cause."}
	case poor[v.Postgres]:
		return summary{"paused", "Sending normally for now: " + about("Postgres", postgresWords[v.Postgres])}
	case poor[v.Redis]:
		return summary{"paused", "Sending normally for now: " + about("Redis", redisWords[v.Redis])}
	case v.Redis != client.StatusRedisOk:
		return summary{"paused", "Sending a little slower: " + about("Redis", redisWords[v.Redis])}
	}
	var down, rejecting, failing []string
	for _, c := range v.Channels {
		switch {
		case c.Problem != "":
			down = append(down, c.Name)
		case c.PauseID != "": // see Summary
		case c.State == client.ChannelStateFailing && c.Until.IsZero():
			failing = append(failing, c.Name)
		case c.State == client.ChannelStateFailing || c.State == client.ChannelStatePaused:
			down = append(down, c.Name)
		case c.State == client.ChannelStateRejecting:
			rejecting = append(rejecting, c.Name)
		}
	}
	if len(rejecting) > 0 {
		return summary{"open", "Messages through " + strings.Join(rejecting, ", ") + " are refused permanently. The failed messages name the reason."}
	}
	switch n := len(down); {
	case n == 0 && len(failing) > 0:
		return summary{"paused", "Many attempts through " + strings.Join(failing, ", ") + " fail and are retried. Messages may be late."}
	case n == 1:
		return summary{"paused", down[0] + " is not sending. Other channels are sending normally."}
	case n > 1:
		return summary{"paused", strings.Join(down[:n-1], ", ") + " and " + down[n-1] + " are not sending. Other channels are sending normally."}
	}
	return summary{"ok", "All systems normal."}
}

// about names a server in what is said of it.
func about(name, words string) string { return name + strings.TrimPrefix(words, "It") }

// summary is a sentence with the look of a status.
type summary struct{ Look, Sentence string }

// PostgresWords and its sisters say in words how the servers are.
func (v *nowView) PostgresWords() string { return postgresWords[v.Postgres] }

func (v *nowView) RedisWords() string { return redisWords[v.Redis] }

func (v *nowView) QueueWords() string { return queueWords[v.Queue] }

var postgresWords = map[client.StatusPostgres]string{
	client.StatusPostgresOk:             "It works normally.",
	client.StatusPostgresUnreachable:    "It is not reachable. Accepted messages are safe.",
	client.StatusPostgresReadOnly:       "It is a standby without writes. An operator must connect sendquota to the primary.",
	client.StatusPostgresNotMigrated:    "It lacks a migration. An operator must run “sendquota migrate”.",
	client.StatusPostgresNotWritable:    "It rejects writes. An operator must grant rights to the role of sendquota.",
	client.StatusPostgresWrongEncoding:  "It is not in UTF-8. An operator must create a database in UTF-8.",
	client.StatusPostgresOldVersion:     "It is too old. An operator must upgrade it.",
	client.StatusPostgresFewLocks:       "It has too few locks for large batches. An operator must raise max_locks_per_transaction.",
	client.StatusPostgresFewConnections: "It allows too few connections. An operator must raise max_connections.",
}

// poor are the states of a server that works, and is not set up as it should be.
var poor = map[any]bool{
	client.StatusPostgresOldVersion: true, client.StatusPostgresFewLocks: true, client.StatusPostgresFewConnections: true,
	client.StatusRedisOldVersion: true, client.StatusRedisEvicts: true, client.StatusRedisNoTime: true,
}

var redisWords = map[client.StatusRedis]string{
	client.StatusRedisOk:          "It works normally.",
	client.StatusRedisUnreachable: "It is not reachable. Workers read due messages from Postgres, and speed limits of callers are not enforced.",
	client.StatusRedisQueueBroken: "It has a paused or damaged queue. Workers read due messages from Postgres.",
	client.StatusRedisNoTime:      "It rejects the command TIME, so speed limits are not enforced. An operator must allow it.",
	client.StatusRedisEvicts:      "It may evict data. An operator must set maxmemory-policy to noeviction.",
	client.StatusRedisOldVersion:  "It is too old. An operator must upgrade it.",
}

var queueWords = map[client.StatusQueue]string{
	client.StatusQueueOk:      "On time.",
	client.StatusQueueOverdue: "Late: too few workers, a provider that is down, or missing wake-ups.",
	client.StatusQueueUnknown: "The age of the oldest due message is unknown.",
}

// ChannelWords says in words what is done with a channel at the moment.
func (v *nowView) ChannelWords(c client.Channel) string {
	switch {
	case c.Problem != "":
		return problemSentence(c.Problem)
	case c.PauseID != "":
		return pausedWords
	case c.State == client.ChannelStateRejecting:
		return rejectingWords(c)
	case c.State == client.ChannelStateFailing && c.Until.IsZero():
		return failingWords(c)
	}
	return channelWords[c.State]
}

// throughputPer is the time span of a channel's throughput in words.
func throughputPer(c client.Channel) string { return frame.SpanWords(c.Throughput.Per) }

var channelWords = map[client.ChannelState]string{
	client.ChannelStateWorking: "Sending normally.",
	client.ChannelStateTrying:  "Recovering: a few messages at a time test the provider after a pause.",
	client.ChannelStatePaused:  "Paused at the provider’s request.",
	client.ChannelStateFailing: "Paused: the provider is not responding. Messages are kept and sent when it is back.",
	client.ChannelStateUnknown: "No worker has reported in the last 30 seconds.",
}
