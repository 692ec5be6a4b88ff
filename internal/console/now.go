package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/push"
)

// nowEvery is how often the page of now looks anew.
const nowEvery = 3 * time.Second

// nowView is how things stand.
type nowView struct {
	client.Status
	Channels []client.Channel
	Unknown  string // why it cannot be said; empty: it can
	Minutes  []client.StatusMinute
	Series   string // the same as JSON, for the lines
}

// now shows how things stand, and follows them.
func (p *page) now() error {
	view, err := p.standing()
	if err != nil {
		return err
	}
	return p.show("now", "Now", view)
}

// nowLive streams the part of the page that changes.
func (p *page) nowLive() error {
	return p.stream("now", "live", nowEvery, func() (any, error) { return p.standing() })
}

// standing asks how things stand. That Postgres does not answer is one of the answers.
func (p *page) standing() (*nowView, error) {
	view := &nowView{}
	status, err := p.api.Records.Status(p.ctx())
	if err == nil && p.May(push.ScopeRead) {
		var report client.ChannelReport
		report, err = p.api.Channels.List(p.ctx())
		view.Channels = report.Channels
	}
	var problem *client.Problem
	switch {
	case errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable:
		view.Unknown = p.Said(problem.Detail)
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

// Summary is the state of everything in a sentence, and whether that is well.
func (v *nowView) Summary() summary {
	switch {
	case v.Unknown != "":
		return summary{"open", "It cannot be said how things stand: the database does not answer. Nothing that was accepted is lost, and sending goes on when it answers again."}
	case v.Status.Status == client.StatusStatusStopping:
		return summary{"paused", "This program is about to stop. Another one takes over; load the page again in a moment."}
	case v.Postgres != client.StatusPostgresOk && !poor[v.Postgres]:
		return summary{"open", "Nothing is accepted or sent at the moment: " + about("Postgres", postgresWords[v.Postgres])}
	case v.Workers == 0:
		return summary{"open", "Nothing is sent at the moment: no worker has told of itself in the last 30 seconds."}
	case v.Queue == client.StatusQueueOverdue:
		return summary{"paused", "Something has been due for too long: the channels below may say why."}
	case poor[v.Postgres]:
		return summary{"paused", "Everything is sent for now: " + about("Postgres", postgresWords[v.Postgres])}
	case poor[v.Redis]:
		return summary{"paused", "Everything is sent for now: " + about("Redis", redisWords[v.Redis])}
	case v.Redis != client.StatusRedisOk:
		return summary{"paused", "Everything is sent, though a little slower: " + about("Redis", redisWords[v.Redis])}
	}
	var down, rejecting, failing []string
	for _, c := range v.Channels {
		switch {
		case c.State == client.ChannelStateFailing && c.Until.IsZero():
			failing = append(failing, c.Name)
		case c.State == client.ChannelStateFailing || c.State == client.ChannelStatePaused:
			down = append(down, c.Name)
		case c.State == client.ChannelStateRejecting:
			rejecting = append(rejecting, c.Name)
		}
	}
	if len(rejecting) > 0 {
		return summary{"open", "Messages through " + strings.Join(rejecting, ", ") + " are refused permanently and fail: the failed pushes name the reason."}
	}
	switch n := len(down); {
	case n == 0 && len(failing) > 0:
		return summary{"paused", "Many attempts through " + strings.Join(failing, ", ") + " fail, and are made again: messages may be late."}
	case n == 1:
		return summary{"paused", "The channel " + down[0] + " takes no messages at the moment; everything else works."}
	case n > 1:
		return summary{"paused", "The channels " + strings.Join(down[:n-1], ", ") + " and " + down[n-1] + " take no messages at the moment; everything else works."}
	}
	return summary{"ok", "Everything works."}
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
	client.StatusPostgresOk:             "It answers, and keeps everything that was accepted.",
	client.StatusPostgresUnreachable:    "It cannot be reached. Nothing that was accepted is lost.",
	client.StatusPostgresReadOnly:       "It is a standby, which takes no writes. An operator has to connect the programs to the primary.",
	client.StatusPostgresNotMigrated:    "It lacks a migration of this release. An operator has to run “sendquota migrate”.",
	client.StatusPostgresNotWritable:    "It lets the programs write nothing. An operator has to give their role the rights.",
	client.StatusPostgresWrongEncoding:  "It is not in UTF-8. An operator has to make a database that is.",
	client.StatusPostgresOldVersion:     "It is older than sendquota needs. An operator has to upgrade it.",
	client.StatusPostgresFewLocks:       "It has fewer locks than large batches need. An operator has to raise max_locks_per_transaction.",
	client.StatusPostgresFewConnections: "It allows fewer connections than the programs open. An operator has to raise max_connections.",
}

// poor are the states of a server that works, and is not set up as it should be.
var poor = map[any]bool{
	client.StatusPostgresOldVersion: true, client.StatusPostgresFewLocks: true, client.StatusPostgresFewConnections: true,
	client.StatusRedisOldVersion: true, client.StatusRedisEvicts: true, client.StatusRedisNoTime: true,
}

var redisWords = map[client.StatusRedis]string{
	client.StatusRedisOk:          "It answers, and wakes the workers on time.",
	client.StatusRedisUnreachable: "It cannot be reached. The workers look for what is due in Postgres meanwhile, and callers’ speed limits are not kept.",
	client.StatusRedisQueueBroken: "It has a queue that is paused or damaged. The workers look for what is due in Postgres meanwhile.",
	client.StatusRedisNoTime:      "It refuses the command TIME, so speed limits are not kept. An operator has to allow it.",
	client.StatusRedisEvicts:      "It may drop what it should keep. An operator has to set its maxmemory-policy to noeviction.",
	client.StatusRedisOldVersion:  "It is older than sendquota needs. An operator has to upgrade it.",
}

var queueWords = map[client.StatusQueue]string{
	client.StatusQueueOk:      "Nothing has been due for long.",
	client.StatusQueueOverdue: "Something has been due for longer than it should: there are too few workers, a provider takes nothing, or nobody is woken.",
	client.StatusQueueUnknown: "It cannot be said how long the oldest has been due.",
}

// ChannelWords says in words what is done with a channel at the moment.
func (v *nowView) ChannelWords(c client.Channel) string {
	switch {
	case c.State == client.ChannelStateRejecting:
		return rejectingWords(c)
	case c.State == client.ChannelStateFailing && c.Until.IsZero():
		return failingWords(c)
	}
	return channelWords[c.State]
}

// Per is the time span of a channel's throughput in words.
func (p *page) Per(c client.Channel) string { return spoken(c.Throughput.Per) }

var channelWords = map[client.ChannelState]string{
	client.ChannelStateWorking: "Messages go out.",
	client.ChannelStateTrying:  "A few messages go out at a time, to see whether the provider is well again after a pause.",
	client.ChannelStatePaused:  "The provider has asked for a pause.",
	client.ChannelStateFailing: "The breaker is open: too many attempts in a row have found the provider down. What waits is kept, and is sent when it is back.",
	client.ChannelStateUnknown: "No worker has told of it in the last 30 seconds.",
}
