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
	"github.com/sendquota/sendquota/internal/stats"
)

// foldLock is the advisory lock of the one worker that folds stat deltas or recounts.
const foldLock = 0x666f6c64

// foldPortion is the number of stat deltas that one transaction folds.
const foldPortion = 5000

// stepHour and stepDay are values of stats.step. ofTotal is the value of stats.of for totals, which no query names.
const (
	stepHour, stepDay = "hour", "day"
	ofTotal           = "total"
)

// StepEver is the step of a campaign's statistics over all time.
const StepEver = "ever"

// statKey is the key of a row of stats.
type statKey struct {
	tenant   uuid.UUID
	step, of string
	at       int64 // in Unix seconds
	key      string
}

func (k statKey) compare(other statKey) int {
	return cmp.Or(slices.Compare(k.tenant[:], other.tenant[:]), cmp.Compare(k.step, other.step), cmp.Compare(k.of, other.of), cmp.Compare(k.at, other.at), cmp.Compare(k.key, other.key))
}

// aheadKey is the key of a row of ahead.
type aheadKey struct {
	tenant            uuid.UUID
	hour              int64 // in Unix seconds
	channel, category string
	campaign          uuid.UUID
}

func (k aheadKey) compare(other aheadKey) int {
	return cmp.Or(slices.Compare(k.tenant[:], other.tenant[:]), cmp.Compare(k.hour, other.hour), cmp.Compare(k.channel, other.channel),
		cmp.Compare(k.category, other.category), slices.Compare(k.campaign[:], other.campaign[:]))
}

// FoldStatDeltas adds a portion of the stat deltas to stats and ahead and deletes them, in one transaction. It does
// nothing if another worker holds the lock. more reports that there may be more deltas.
func (s *Store) FoldStatDeltas(ctx context.Context) (more bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var ours bool
			if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, foldLock).Scan(&ours); err != nil || !ours {
				return err
			}
			f := fold{stats: map[statKey]*stats.Group{}, ahead: map[aheadKey]int64{}}
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

// fold sums up a portion of stat deltas.
type fold struct {
	stats map[statKey]*stats.Group
	ahead map[aheadKey]int64
}

// deltaRow is a row of stat_deltas.
type deltaRow struct {
	tenant                        uuid.UUID
	what, channel, category, rule string
	hour                          time.Time
	sendHour                      zeronull.Timestamptz
	campaign                      zeronull.UUID
	level                         int16
	n, deferred, segments         int64
	late                          []int16
}

const deltaColumns = `tenant_id, what, hour, send_hour, channel, category, level, campaign_id, rule, n, deferred, segments, late`

func (d *deltaRow) fields() []any {
	return []any{&d.tenant, &d.what, &d.hour, &d.sendHour, &d.channel, &d.category, &d.level, &d.campaign, &d.rule, &d.n, &d.deferred, &d.segments, &d.late}
}

// take deletes a portion of the stat deltas and adds them to the fold. It returns their number.
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

// add adds a stat delta to every row that it counts in.
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
		f.count(statKey{d.tenant, StepEver, string(stats.ByCampaign), 0, uuid.UUID(d.campaign).String()}, d)
	}
}

func (f *fold) count(k statKey, d *deltaRow) {
	if f.stats[k] == nil {
		f.stats[k] = &stats.Group{Late: stats.Lateness{}}
	}
	d.addTo(f.stats[k])
}

// statGroup is a group that a stat delta counts in.
type statGroup struct{ of, key string }

// groups lists the groups that the stat delta counts in.
func (d *deltaRow) groups() []statGroup {
	if d.what == pushes.DeltaRule {
		return []statGroup{{string(stats.ByRule), d.rule}}
	}
	return []statGroup{{ofTotal, ""}, {string(stats.ByChannel), d.channel}, {string(stats.ByCategory), d.category}, {string(stats.ByLevel), push.Levels[d.level].String()}, {string(stats.ByCampaign), d.campaignKey()}}
}

func (d *deltaRow) campaignKey() string {
	if id := uuid.UUID(d.campaign); id != uuid.Nil {
		return id.String()
	}
	return ""
}

// addTo adds the stat delta to statistics.
func (d *deltaRow) addTo(s *stats.Group) {
	switch d.what {
	case pushes.DeltaAccepted:
		s.Accepted += d.n
		s.Deferred += d.deferred
	case pushes.DeltaRefused, pushes.DeltaRule:
		s.Refused += d.n
	case string(push.Sent):
		s.Sent += d.n
		s.Segments += d.segments
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

// SweepStats deletes up to limit hourly rows older than keep, and returns their number. Daily rows stay.
func (s *Store) SweepStats(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	tag, err := s.db.Pool.Exec(ctx, `
		DELETE FROM stats WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM stats WHERE step = 'hour' AND at < clock_timestamp() - $1::interval ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED))`, keep, limit)
	return int(tag.RowsAffected()), pg.Classify(err)
}
