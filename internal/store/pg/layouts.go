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

// A plan that is kept locks every partition of the table that it names, each time, whichever it needs: hundreds of locks,
// of the few thousand that a server has. So a statement names the partitions themselves.

// Partitioned is a table with partitions of equal length, in UTC. A partition is named after its first day; weeks begin on
// Mondays.
type Partitioned struct {
	Parent string
	Step   time.Duration
}

var (
	WeeksOfPushes = Partitioned{"pushes", 7 * 24 * time.Hour}      // by send_at
	DaysOfSends   = Partitioned{"sends", 24 * time.Hour}           // by started_at
	WeeksOfKeys   = Partitioned{"idempotency", 7 * 24 * time.Hour} // by created_at
	WeeksOfLog    = Partitioned{"audit_log", 7 * 24 * time.Hour}   // by created_at
)

// Begin is when the partition of a time begins. The zero time is a Monday.
func (p Partitioned) Begin(at time.Time) time.Time { return at.UTC().Truncate(p.Step) }

func (p Partitioned) name(begin time.Time) string { return p.Parent + begin.Format("_20060102") }

// Span is the time that partitions hold, which follow one another: from the first one's begin to before the last one's end. The table
// itself holds all times.
func (p Partitioned) Span(tables []string) (begin, end time.Time, some bool) {
	first, err := time.Parse(p.Parent+"_20060102", tables[0])
	if err != nil {
		return begin, end, false
	}
	last, _ := time.Parse(p.Parent+"_20060102", tables[len(tables)-1]) // it has such a name, too
	return first, last.Add(p.Step), true
}

// Parts are the partitions that a table had when they were read.
type Parts struct {
	Partitioned
	Begins []time.Time // in order
	Others []string    // partitions that were attached by hand, and are found by no name
}

// errStale: the layout was read before a partition was made that may be needed. See [Layouts.mend].
var ErrStale = errors.New("the tables have other partitions than were known")

// At is the table that holds what has a time: the parent, if it is not known which it is.
func (p Parts) At(At time.Time) string { return p.All(At, At)[0] }

// Between lists the tables that hold what has a time from one to another, in order. It is not certain that there is no other
// one: see [Parts.covers].
func (p Parts) Between(from, until time.Time) (tables []string) {
	first, last := p.Begin(from), p.Begin(until)
	for _, begin := range p.Begins {
		if !begin.Before(first) && !begin.After(last) {
			tables = append(tables, p.name(begin))
		}
	}
	return tables
}

// Covers reports whether all partitions between two times are known. Those before the oldest one were dropped, or will never
// be made.
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

// Names lists all partitions that there were.
func (p Parts) Names() []string {
	names := slices.Clone(p.Others)
	for _, begin := range p.Begins {
		names = append(names, p.name(begin))
	}
	return names
}

// All lists the tables that hold what has a time from one to another: the parent, if it is not certain which they are.
func (p Parts) All(from, until time.Time) []string {
	if tables := p.Between(from, until); len(tables) > 0 && p.Covers(from, until) {
		return tables
	}
	return []string{p.Parent}
}

// ByTable puts rows together that are in one table: their indexes, in the order of the tables.
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

// CompleteSQL reports whether pushes has no partition but those with the names $1. That some were dropped does not matter.
const CompleteSQL = `SELECT NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = to_regclass('pushes') AND c.relname <> ALL ($1::text[]))`

// layout is how the tables are divided.
type layout struct {
	Pushes, Sends, Keys, Log Parts
	read                     time.Time
	asked, now               time.Time // by our clock and by that of Postgres, when they were read
}

// layoutTime is for how long a layout is believed that no error contradicts.
const layoutTime = time.Minute

// Layouts keeps the layout that was read last.
type Layouts struct{ Last atomic.Pointer[layout] }

func (l *Layouts) Pushes() Parts { return l.Last.Load().Pushes }
func (l *Layouts) Sends() Parts  { return l.Last.Load().Sends }
func (l *Layouts) Keys() Parts   { return l.Last.Load().Keys }
func (l *Layouts) Log() Parts    { return l.Last.Load().Log }

// Now is between what times it is by Postgres' clock, if that has not jumped. Ours may be wrong; and what measures how much time has passed stands
// still while a machine sleeps.
func (l *Layouts) Now() (since, until time.Time) {
	last, ours := l.Last.Load(), time.Now()
	theirs := last.now.Add(ours.Sub(last.asked))
	if ours.Before(theirs) {
		return ours, theirs
	}
	return theirs, ours
}

// Fresh reads the layout on a connection that is in no transaction, if it is not known or too old.
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

// partitionName finds the name of a partition in what Postgres says, in whatever language.
var partitionName = regexp.MustCompile(`"[a-z_]+_\d{8}"`)

// Repartitioned reports whether an error says that a partition was made or dropped after the layout was read.
func Repartitioned(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == undefinedTable && partitionName.MatchString(pgErr.Message) || errors.Is(err, ErrStale)
}

// Mend has the layout read again after an error that says that it has changed.
func (l *Layouts) Mend(err error) (mended bool) {
	mended = HasCode(err, undefinedTable, outOfLocks) || errors.Is(err, ErrStale)
	if mended {
		l.Forget()
	}
	return mended
}

// Forget has the layout read again.
func (l *Layouts) Forget() {
	if old := l.Last.Load(); old != nil {
		next := *old
		next.read = time.Time{}
		l.Last.Store(&next)
	}
}

// rowTime finds the time of a row in what Postgres says of it, in whatever language.
var rowTime = regexp.MustCompile(`\((?:send_at|started_at|created_at)\) = \(([^()]+)\)`)

// MakePart makes the partition after an error that says that a row has none: 1, or 0 if another program has made it. Most are
// made ahead. It returns the error, or why the partition could not be made: Postgres may fail, and be back soon.
func (s *DB) MakePart(ctx context.Context, err error) (made int, parted bool, _ error) {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code != checkViolation || pgErr.ConstraintName != "" {
		return 0, false, err
	}
	key := rowTime.FindStringSubmatch(pgErr.Detail)
	if key == nil {
		return 0, false, err
	}
	defer s.Layouts.Forget()
	failed := s.Pool.QueryRow(ctx, `SELECT make_partitions($1, at, at) FROM (SELECT $2::text::timestamptz AS at) row`, pgErr.TableName, key[1]).Scan(&made)
	if failed != nil {
		return 0, false, failed
	}
	return made, true, err
}

// In names tables in a statement: {pushes} or {sends} stand for one of theirs, or for several together.
func In(sql, what string, tables ...string) string {
	name := tables[0]
	if len(tables) > 1 {
		name = "(TABLE " + strings.Join(tables, " UNION ALL TABLE ") + ")"
	}
	return strings.ReplaceAll(sql, what, name)
}

// ClockGap is by how much Postgres' clock may be apart at most from what is known of it: it may jump, as in a failover.
const ClockGap = time.Hour
