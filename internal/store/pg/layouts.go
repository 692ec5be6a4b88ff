package pg

import (
	"context"
	"errors"
	"iter"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A cached plan locks all partitions of the table that it names at each execution, whichever it needs: hundreds of the few
// thousand locks of a server. So statements name the partitions themselves.

// Partitioned is a table with partitions of equal length, in UTC. A partition is named after its first day. Weeks
// begin on Mondays.
type Partitioned struct {
	Parent string
	Step   time.Duration
}

// The partitioned tables.
var (
	// WeeksOfPushes is the table pushes, by send_at.
	WeeksOfPushes = Partitioned{"pushes", 7 * 24 * time.Hour}
	// DaysOfSends is the table sends, by started_at.
	DaysOfSends = Partitioned{"sends", 24 * time.Hour}
	// WeeksOfKeys is the table idempotency, by created_at.
	WeeksOfKeys = Partitioned{"idempotency", 7 * 24 * time.Hour}
	// WeeksOfLog is the table audit_log, by created_at.
	WeeksOfLog = Partitioned{"audit_log", 7 * 24 * time.Hour}
)

// Begin returns the beginning of the partition that holds a time. Truncate works because the zero time is a Monday.
func (p Partitioned) Begin(at time.Time) time.Time { return at.UTC().Truncate(p.Step) }

func (p Partitioned) name(begin time.Time) string { return p.Parent + begin.Format("_20060102") }

// Span returns the time range of consecutive partitions: from the beginning of the first to the end of the last,
// exclusive. some is false for the parent table, which holds all times.
func (p Partitioned) Span(tables []string) (begin, end time.Time, some bool) {
	first, err := time.Parse(p.Parent+"_20060102", tables[0])
	if err != nil {
		return begin, end, false
	}
	last, _ := time.Parse(p.Parent+"_20060102", tables[len(tables)-1]) // its name has the same form
	return first, last.Add(p.Step), true
}

// Parts lists the partitions that a table had when the layout was read.
type Parts struct {
	Partitioned
	Begins []time.Time // ascending
	Others []string    // partitions with other names, which an operator attached
}

// At returns the table that holds the rows of a time. It returns the parent if it does not know the partition.
func (p Parts) At(at time.Time) string { return p.All(at, at)[0] }

// Between lists the known partitions that overlap the time from one bound to the other, both inclusive, in ascending
// order. Others may exist: see [Parts.Covers].
func (p Parts) Between(from, until time.Time) (tables []string) {
	first, last := p.Begin(from), p.Begin(until)
	for _, begin := range p.Begins {
		if !begin.Before(first) && !begin.After(last) {
			tables = append(tables, p.name(begin))
		}
	}
	return tables
}

// Covers reports whether all partitions between two times are known. Partitions before the oldest one were dropped or
// will never be made.
func (p Parts) Covers(from, until time.Time) bool {
	if len(p.Begins) == 0 {
		return false
	}
	if oldest := p.Begins[0]; from.Before(oldest) {
		from = oldest
	}
	first, last := p.Begin(from), p.Begin(until)
	if last.Before(first) {
		return true
	}
	begins := p.Begins[sort.Search(len(p.Begins), func(i int) bool { return !p.Begins[i].Before(first) }):]
	n := int(last.Sub(first)/p.Step) + 1
	return len(begins) >= n && begins[n-1].Equal(last)
}

// Names lists all known partitions.
func (p Parts) Names() []string {
	names := slices.Clone(p.Others)
	for _, begin := range p.Begins {
		names = append(names, p.name(begin))
	}
	return names
}

// All lists the tables that hold the rows of a time range, both bounds inclusive. It returns only the parent if it
// does not know all of its partitions.
func (p Parts) All(from, until time.Time) []string {
	if tables := p.Between(from, until); len(tables) > 0 && p.Covers(from, until) {
		return tables
	}
	return []string{p.Parent}
}

// ByTable groups rows by their table and yields the indexes of each group, in the order of the tables' names.
func ByTable[T any](rows []T, table func(T) string) iter.Seq2[string, []int] {
	found := map[string][]int{}
	for i, row := range rows {
		name := table(row)
		found[name] = append(found[name], i)
	}
	return func(yield func(string, []int) bool) {
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if !yield(name, found[name]) {
				return
			}
		}
	}
}

// CompleteSQL reports whether pushes has no partition except those with the names $1. Names of dropped partitions do
// no harm.
const CompleteSQL = `SELECT NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = to_regclass('pushes') AND c.relname <> ALL ($1::text[]))`

// layout is a snapshot of the partitions of all tables.
type layout struct {
	Pushes, Sends, Keys, Log Parts
	read                     time.Time
	asked, now               time.Time // when it was read, by the local clock and by the clock of Postgres
}

// layoutTime is the time after which a layout is read again even if no error contradicts it.
const layoutTime = time.Minute

// Layouts caches the latest layout.
type Layouts struct{ Last atomic.Pointer[layout] }

// Pushes returns the partitions of pushes.
func (l *Layouts) Pushes() Parts { return l.Last.Load().Pushes }

// Sends returns the partitions of sends.
func (l *Layouts) Sends() Parts { return l.Last.Load().Sends }

// Keys returns the partitions of idempotency.
func (l *Layouts) Keys() Parts { return l.Last.Load().Keys }

// Log returns the partitions of audit_log.
func (l *Layouts) Log() Parts { return l.Last.Load().Log }

// Now returns bounds on the current time of Postgres, if its clock has not jumped. The local clock may be wrong, and
// the monotonic clock stops while a machine sleeps.
func (l *Layouts) Now() (since, until time.Time) {
	last, ours := l.Last.Load(), time.Now()
	theirs := last.now.Add(ours.Sub(last.asked))
	if ours.Before(theirs) {
		return ours, theirs
	}
	return theirs, ours
}

// Fresh reads the layout again if it is missing or older than layoutTime. The connection must not be in a transaction.
func (l *Layouts) Fresh(ctx context.Context, c *pgxpool.Conn) error {
	if last := l.Last.Load(); last != nil && time.Since(last.read) < layoutTime {
		return nil
	}
	next := &layout{Pushes: Parts{Partitioned: WeeksOfPushes}, Sends: Parts{Partitioned: DaysOfSends}, Keys: Parts{Partitioned: WeeksOfKeys},
		Log: Parts{Partitioned: WeeksOfLog}}
	rows, _ := c.Query(ctx, `
		SELECT p.relname, c.relname, clock_timestamp()
		FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN (to_regclass('pushes'), to_regclass('sends'), to_regclass('idempotency'), to_regclass('audit_log'))
		UNION ALL SELECT '', '', clock_timestamp()
		ORDER BY 1, 2`)
	var parent, name string
	_, err := pgx.ForEachRow(rows, []any{&parent, &name, &next.now}, func() error {
		p := &next.Pushes
		switch parent {
		case next.Sends.Parent:
			p = &next.Sends
		case next.Keys.Parent:
			p = &next.Keys
		case next.Log.Parent:
			p = &next.Log
		case "":
			return nil
		}
		begin, err := time.Parse(p.Parent+"_20060102", name)
		if err == nil && begin.Equal(p.Begin(begin)) {
			p.Begins = append(p.Begins, begin)
		} else {
			p.Others = append(p.Others, name)
		}
		return nil
	})
	if err == nil {
		next.asked = time.Now()
		next.read = next.asked
		l.Last.Store(next)
	}
	return err
}

// partitionName finds the name of a partition in an error message of Postgres, in any language.
var partitionName = regexp.MustCompile(`"[a-z_]+_\d{8}"`)

// Repartitioned reports whether an error means that a partition was made or dropped after the layout was read.
func Repartitioned(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == undefinedTable && partitionName.MatchString(pgErr.Message) || errors.Is(err, ErrStale)
}

// Mend invalidates the layout if an error suggests that it is outdated, and reports whether it did.
func (l *Layouts) Mend(err error) (mended bool) {
	mended = HasCode(err, undefinedTable, outOfLocks) || errors.Is(err, ErrStale)
	if mended {
		l.Forget()
	}
	return mended
}

// Forget invalidates the layout, so that the next transaction reads it again.
func (l *Layouts) Forget() {
	if old := l.Last.Load(); old != nil {
		next := *old
		next.read = time.Time{}
		l.Last.Store(&next)
	}
}

// In replaces what, such as {pushes} or {sends}, in a statement with a table, or with a union of several.
func In(sql, what string, tables ...string) string {
	name := tables[0]
	if len(tables) > 1 {
		name = "(TABLE " + strings.Join(tables, " UNION ALL TABLE ") + ")"
	}
	return strings.ReplaceAll(sql, what, name)
}

// ClockGap is the maximum difference that is assumed between the clock of Postgres and [Layouts.Now]. The clock may
// jump, for example in a failover.
const ClockGap = time.Hour
