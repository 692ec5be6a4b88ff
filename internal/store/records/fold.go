package records

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// foldLock names the lock of the only worker that adds stat deltas to the numbers.
const foldLock = 0x666f6c64

// foldPortion is how many stat deltas one transaction adds.
const foldPortion = 5000

// The steps of numbers, and the one thing that they are of which no question names.
const (
	stepHour, stepDay, StepEver = "hour", "day", "ever"
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

// FoldStatDeltas adds some of the stat deltas to the numbers and removes them, in one transaction; none if another worker is at
// that. It reports whether there may be more.
func (s *Store) FoldStatDeltas(ctx context.Context) (more bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
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

// fold is a portion of stat deltas.
type fold struct {
	stats map[statKey]*push.Stat
	ahead map[aheadKey]int64
}

// deltaRow is a row of stat_deltas as it is read.
type deltaRow struct {
	tenant                        uuid.UUID
	what, channel, category, rule string
	hour                          time.Time
	sendHour                      zeronull.Timestamptz
	campaign                      zeronull.UUID
	n, deferred                   int64
	late                          []int16
}

const deltaColumns = `tenant_id, what, hour, send_hour, channel, category, campaign_id, rule, n, deferred, late`

func (d *deltaRow) fields() []any {
	return []any{&d.tenant, &d.what, &d.hour, &d.sendHour, &d.channel, &d.category, &d.campaign, &d.rule, &d.n, &d.deferred, &d.late}
}

// take removes stat deltas, and counts them.
func (f *fold) take(ctx context.Context, tx pgx.Tx) (n int, err error) {
	rows, _ := tx.Query(ctx, `
		DELETE FROM stat_deltas WHERE ctid = ANY (ARRAY(SELECT ctid FROM stat_deltas LIMIT $1)) RETURNING `+deltaColumns, foldPortion)
	var row deltaRow
	_, err = pgx.ForEachRow(rows, row.fields(), func() error {
		n++
		f.add(&row)
		return nil
	})
	return n, err
}

// add counts a stat delta in every number that it is part of.
func (f *fold) add(d *deltaRow) {
	if sendHour := time.Time(d.sendHour); !sendHour.IsZero() {
		n := d.n
		if d.what != pushes.DeltaAccepted && d.what != pushes.DeltaMoved {
			n = -n
		}
		f.ahead[aheadKey{d.tenant, sendHour.Unix(), d.channel, d.category, uuid.UUID(d.campaign)}] += n
	}
	if d.what == pushes.DeltaMoved {
		return
	}
	hour := d.hour.Unix()
	for _, of := range d.groups() {
		for _, step := range []struct {
			name string
			at   int64
		}{{stepHour, hour}, {stepDay, d.hour.Truncate(24 * time.Hour).Unix()}} {
			f.count(statKey{d.tenant, step.name, of.of, step.at, of.key}, d)
		}
	}
	if uuid.UUID(d.campaign) != uuid.Nil && d.what != pushes.DeltaRule {
		f.count(statKey{d.tenant, StepEver, string(push.ByCampaign), 0, uuid.UUID(d.campaign).String()}, d)
	}
}

func (f *fold) count(k statKey, d *deltaRow) {
	if f.stats[k] == nil {
		f.stats[k] = &push.Stat{Late: push.Lateness{}}
	}
	d.addTo(f.stats[k])
}

// statGroup is a group that a stat delta is in.
type statGroup struct{ of, key string }

// groups lists what the stat delta is counted under.
func (d *deltaRow) groups() []statGroup {
	if d.what == pushes.DeltaRule {
		return []statGroup{{string(push.ByRule), d.rule}}
	}
	return []statGroup{{ofTotal, ""}, {string(push.ByChannel), d.channel}, {string(push.ByCategory), d.category}, {string(push.ByCampaign), d.campaignKey()}}
}

func (d *deltaRow) campaignKey() string {
	if id := uuid.UUID(d.campaign); id != uuid.Nil {
		return id.String()
	}
	return ""
}

// addTo counts the stat delta.
func (d *deltaRow) addTo(s *push.Stat) {
	switch d.what {
	case pushes.DeltaAccepted:
		s.Accepted += d.n
		s.Deferred += d.deferred
	case pushes.DeltaRefused, pushes.DeltaRule:
		s.Refused += d.n
	case string(push.Sent):
		s.Sent += d.n
		for _, bucket := range d.late {
			s.Late[bucket]++
		}
	case string(push.Failed):
		s.Failed += d.n
	case string(push.Expired):
		s.Expired += d.n
	case string(push.Canceled):
		s.Canceled += d.n
	}
}

// SweepStats removes up to limit numbers of hours that are longer ago than keep. Those of days are kept.
func (s *Store) SweepStats(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	tag, err := s.db.Pool.Exec(ctx, `
		DELETE FROM stats WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM stats WHERE step = 'hour' AND at < clock_timestamp() - $1::interval ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))`, keep, limit)
	return int(tag.RowsAffected()), pg.Classify(err)
}
