package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// foldLock names the lock of the only worker that adds tallies to the numbers.
const foldLock = 0x666f6c64

// foldPortion is how many tallies one transaction adds.
const foldPortion = 5000

// The steps of numbers, and the one thing that they are of which no question names.
const (
	stepHour, stepDay, stepEver = "hour", "day", "ever"
	ofTotal                     = "total"
)

// statKey is a row of stats.
type statKey struct {
	tenant   uuid.UUID
	step, of string
	at       int64 // Unix
	key      string
}

func (k statKey) compare(other statKey) int {
	return cmp.Or(slices.Compare(k.tenant[:], other.tenant[:]), cmp.Compare(k.step, other.step), cmp.Compare(k.of, other.of), cmp.Compare(k.at, other.at), cmp.Compare(k.key, other.key))
}

// aheadKey is a row of ahead.
type aheadKey struct {
	tenant            uuid.UUID
	hour              int64 // Unix
	channel, category string
	campaign          uuid.UUID
}

func (k aheadKey) compare(other aheadKey) int {
	return cmp.Or(slices.Compare(k.tenant[:], other.tenant[:]), cmp.Compare(k.hour, other.hour), cmp.Compare(k.channel, other.channel),
		cmp.Compare(k.category, other.category), slices.Compare(k.campaign[:], other.campaign[:]))
}

// FoldTallies adds some of the tallies to the numbers and removes them, in one transaction; none if another worker is at that. It
// reports whether there may be more.
func (s *Store) FoldTallies(ctx context.Context) (more bool, err error) {
	err = s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var ours bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, foldLock).Scan(&ours); err != nil || !ours {
				return err
			}
			f := fold{stats: map[statKey]*push.Stat{}, ahead: map[aheadKey]int64{}}
			n, err := f.take(ctx, tx)
			if err != nil || n == 0 {
				return err
			}
			more = n == foldPortion
			return f.write(ctx, tx)
		})
	})
	return more && err == nil, err
}

// fold is a portion of tallies.
type fold struct {
	stats map[statKey]*push.Stat
	ahead map[aheadKey]int64
}

// tallyRow is a row of tallies as it is read.
type tallyRow struct {
	tenant                        uuid.UUID
	what, channel, category, rule string
	hour                          time.Time
	sendHour                      zeronull.Timestamptz
	campaign                      zeronull.UUID
	n, deferred                   int64
	late                          []int16
}

const tallyColumns = `tenant_id, what, hour, send_hour, channel, category, campaign_id, rule, n, deferred, late`

func (t *tallyRow) fields() []any {
	return []any{(*[16]byte)(&t.tenant), &t.what, &t.hour, &t.sendHour, &t.channel, &t.category, &t.campaign, &t.rule, &t.n, &t.deferred, &t.late}
}

// take removes tallies, and counts them.
func (f *fold) take(ctx context.Context, tx pgx.Tx) (n int, err error) {
	rows, _ := tx.Query(ctx, `
		DELETE FROM tallies WHERE ctid = ANY (ARRAY(SELECT ctid FROM tallies LIMIT $1)) RETURNING `+tallyColumns, foldPortion)
	var row tallyRow
	_, err = pgx.ForEachRow(rows, row.fields(), func() error {
		n++
		f.add(&row)
		return nil
	})
	return n, err
}

// add counts a tally in every number that it is part of.
func (f *fold) add(t *tallyRow) {
	if sendHour := time.Time(t.sendHour); !sendHour.IsZero() {
		n := t.n
		if t.what != tallyAccepted && t.what != tallyMoved {
			n = -n
		}
		f.ahead[aheadKey{t.tenant, sendHour.Unix(), t.channel, t.category, uuid.UUID(t.campaign)}] += n
	}
	if t.what == tallyMoved {
		return
	}
	hour := t.hour.Unix()
	for _, of := range t.groups() {
		for _, step := range []struct {
			name string
			at   int64
		}{{stepHour, hour}, {stepDay, t.hour.Truncate(24 * time.Hour).Unix()}} {
			f.count(statKey{t.tenant, step.name, of.of, step.at, of.key}, t)
		}
	}
	if uuid.UUID(t.campaign) != uuid.Nil && t.what != tallyRule {
		f.count(statKey{t.tenant, stepEver, string(push.ByCampaign), 0, uuid.UUID(t.campaign).String()}, t)
	}
}

func (f *fold) count(k statKey, t *tallyRow) {
	if f.stats[k] == nil {
		f.stats[k] = &push.Stat{Late: push.Lateness{}}
	}
	t.addTo(f.stats[k])
}

// statGroup is a group that a tally is in.
type statGroup struct{ of, key string }

// groups lists what the tally is counted under.
func (t *tallyRow) groups() []statGroup {
	if t.what == tallyRule {
		return []statGroup{{string(push.ByRule), t.rule}}
	}
	return []statGroup{{ofTotal, ""}, {string(push.ByChannel), t.channel}, {string(push.ByCategory), t.category}, {string(push.ByCampaign), t.campaignKey()}}
}

func (t *tallyRow) campaignKey() string {
	if id := uuid.UUID(t.campaign); id != uuid.Nil {
		return id.String()
	}
	return ""
}

// addTo counts the tally.
func (t *tallyRow) addTo(s *push.Stat) {
	switch t.what {
	case tallyAccepted:
		s.Accepted += t.n
		s.Deferred += t.deferred
	case tallyRefused, tallyRule:
		s.Refused += t.n
	case string(push.Sent):
		s.Sent += t.n
		for _, bucket := range t.late {
			s.Late[bucket]++
		}
	case string(push.Failed):
		s.Failed += t.n
	case string(push.Expired):
		s.Expired += t.n
	case string(push.Canceled):
		s.Canceled += t.n
	}
}

// SweepStats removes up to limit numbers of hours that are longer ago than keep. Those of days are kept.
func (s *Store) SweepStats(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `
		DELETE FROM stats WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM stats WHERE step = 'hour' AND at < clock_timestamp() - $1::interval ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))`, keep, limit)
	return int(tag.RowsAffected()), classify(err)
}
