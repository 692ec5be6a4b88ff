package store

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

// partitioned is a table with partitions of equal length, in UTC. A partition is named after its first day; weeks begin on
// Mondays.
type partitioned struct {
	parent string
	step   time.Duration
}

var (
	weeksOfPushes = partitioned{"pushes", 7 * 24 * time.Hour}      // by send_at
	daysOfSends   = partitioned{"sends", 24 * time.Hour}           // by started_at
	weeksOfKeys   = partitioned{"idempotency", 7 * 24 * time.Hour} // by created_at
	weeksOfLog    = partitioned{"audit_log", 7 * 24 * time.Hour}   // by created_at
)

// begin is when the partition of a time begins. The zero time is a Monday.
func (p partitioned) begin(at time.Time) time.Time { return at.UTC().Truncate(p.step) }

func (p partitioned) name(begin time.Time) string { return p.parent + begin.Format("_20060102") }

// span is the time that partitions hold, which follow one another: from the first one's begin to before the last one's end. The table
// itself holds all times.
func (p partitioned) span(tables []string) (begin, end time.Time, some bool) {
	first, err := time.Parse(p.parent+"_20060102", tables[0])
	if err != nil {
		return begin, end, false
	}
	last, _ := time.Parse(p.parent+"_20060102", tables[len(tables)-1]) // it has such a name, too
	return first, last.Add(p.step), true
}

// parts are the partitions that a table had when they were read.
type parts struct {
	partitioned
	begins []time.Time // in order
	others []string    // partitions that were attached by hand, and are found by no name
}

// errStale: the layout was read before a partition was made that may be needed. See [layouts.mend].
var errStale = errors.New("the tables have other partitions than were known")

// at is the table that holds what has a time: the parent, if it is not known which it is.
func (p parts) at(at time.Time) string { return p.all(at, at)[0] }

// between lists the tables that hold what has a time from one to another, in order. It is not certain that there is no other
// one: see [parts.covers].
func (p parts) between(from, until time.Time) (tables []string) {
	first, last := p.begin(from), p.begin(until)
	for _, begin := range p.begins {
		if !begin.Before(first) && !begin.After(last) {
			tables = append(tables, p.name(begin))
		}
	}
	return tables
}

// covers reports whether all partitions between two times are known. Those before the oldest one were dropped, or will never
// be made.
func (p parts) covers(from, until time.Time) bool {
	if len(p.begins) == 0 {
		return false
	}
	if oldest := p.begins[0]; from.Before(oldest) {
		from = oldest
	}
	first, last := p.begin(from), p.begin(until)
	if last.Before(first) {
		return true
	}
	begins := p.begins[sort.Search(len(p.begins), func(i int) bool { return !p.begins[i].Before(first) }):]
	n := int(last.Sub(first)/p.step) + 1
	return len(begins) >= n && begins[n-1].Equal(last)
}

// names lists all partitions that there were.
func (p parts) names() []string {
	names := slices.Clone(p.others)
	for _, begin := range p.begins {
		names = append(names, p.name(begin))
	}
	return names
}

// all lists the tables that hold what has a time from one to another: the parent, if it is not certain which they are.
func (p parts) all(from, until time.Time) []string {
	if tables := p.between(from, until); len(tables) > 0 && p.covers(from, until) {
		return tables
	}
	return []string{p.parent}
}

// byTable puts rows together that are in one table: their indexes, in the order of the tables.
func byTable[T any](rows []T, table func(T) string) iter.Seq2[string, []int] {
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

// completeSQL reports whether pushes has no partition but those with the names $1. That some were dropped does not matter.
const completeSQL = `SELECT NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
	WHERE i.inhparent = to_regclass('pushes') AND c.relname <> ALL ($1::text[]))`

// layout is how the tables are divided.
type layout struct {
	pushes, sends, keys, log parts
	read                     time.Time
	asked, now               time.Time // by our clock and by that of Postgres, when they were read
}

// layoutTime is for how long a layout is believed that no error contradicts.
const layoutTime = time.Minute

// layouts keeps the layout that was read last.
type layouts struct{ last atomic.Pointer[layout] }

func (l *layouts) pushes() parts { return l.last.Load().pushes }
func (l *layouts) sends() parts  { return l.last.Load().sends }
func (l *layouts) keys() parts   { return l.last.Load().keys }
func (l *layouts) log() parts    { return l.last.Load().log }

// now is between what times it is by Postgres' clock, if that has not jumped. Ours may be wrong; and what measures how much time has passed stands
// still while a machine sleeps.
func (l *layouts) now() (since, until time.Time) {
	last, ours := l.last.Load(), time.Now()
	theirs := last.now.Add(ours.Sub(last.asked))
	if ours.Before(theirs) {
		return ours, theirs
	}
	return theirs, ours
}

// fresh reads the layout on a connection that is in no transaction, if it is not known or too old.
func (l *layouts) fresh(ctx context.Context, c *pgxpool.Conn) error {
	if last := l.last.Load(); last != nil && time.Since(last.read) < layoutTime {
		return nil
	}
	next := &layout{pushes: parts{partitioned: weeksOfPushes}, sends: parts{partitioned: daysOfSends}, keys: parts{partitioned: weeksOfKeys},
		log: parts{partitioned: weeksOfLog}}
	rows, _ := c.Query(ctx, `
		SELECT p.relname, c.relname, clock_timestamp()
		FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent IN (to_regclass('pushes'), to_regclass('sends'), to_regclass('idempotency'), to_regclass('audit_log'))
		UNION ALL SELECT '', '', clock_timestamp()
		ORDER BY 1, 2`)
	var parent, name string
	_, err := pgx.ForEachRow(rows, []any{&parent, &name, &next.now}, func() error {
		p := &next.pushes
		switch parent {
		case next.sends.parent:
			p = &next.sends
		case next.keys.parent:
			p = &next.keys
		case next.log.parent:
			p = &next.log
		case "":
			return nil
		}
		begin, err := time.Parse(p.parent+"_20060102", name)
		if err == nil && begin.Equal(p.begin(begin)) {
			p.begins = append(p.begins, begin)
		} else {
			p.others = append(p.others, name)
		}
		return nil
	})
	if err == nil {
		next.asked = time.Now()
		next.read = next.asked
		l.last.Store(next)
	}
	return err
}

// partitionName finds the name of a partition in what Postgres says, in whatever language.
var partitionName = regexp.MustCompile(`"[a-z_]+_\d{8}"`)

// repartitioned reports whether an error says that a partition was made or dropped after the layout was read.
func repartitioned(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == undefinedTable && partitionName.MatchString(pgErr.Message) || errors.Is(err, errStale)
}

// mend has the layout read again after an error that says that it has changed.
func (l *layouts) mend(err error) (mended bool) {
	mended = hasCode(err, undefinedTable, outOfLocks) || errors.Is(err, errStale)
	if mended {
		l.forget()
	}
	return mended
}

// forget has the layout read again.
func (l *layouts) forget() {
	if old := l.last.Load(); old != nil {
		next := *old
		next.read = time.Time{}
		l.last.Store(&next)
	}
}

// rowTime finds the time of a row in what Postgres says of it, in whatever language.
var rowTime = regexp.MustCompile(`\((?:send_at|started_at|created_at)\) = \(([^()]+)\)`)

// makePart makes the partition after an error that says that a row has none: 1, or 0 if another program has made it. Most are
// made ahead. It returns the error, or why the partition could not be made: Postgres may fail, and be back soon.
func (s *Store) makePart(ctx context.Context, err error) (made int, parted bool, _ error) {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pgErr.Code != checkViolation || pgErr.ConstraintName != "" {
		return 0, false, err
	}
	key := rowTime.FindStringSubmatch(pgErr.Detail)
	if key == nil {
		return 0, false, err
	}
	defer s.layouts.forget()
	failed := s.pool.QueryRow(ctx, `SELECT make_partitions($1, at, at) FROM (SELECT $2::text::timestamptz AS at) row`, pgErr.TableName, key[1]).Scan(&made)
	if failed != nil {
		return 0, false, failed
	}
	return made, true, err
}

// in names tables in a statement: {pushes} or {sends} stand for one of theirs, or for several together.
func in(sql, what string, tables ...string) string {
	name := tables[0]
	if len(tables) > 1 {
		name = "(TABLE " + strings.Join(tables, " UNION ALL TABLE ") + ")"
	}
	return strings.ReplaceAll(sql, what, name)
}

// clockGap is by how much Postgres' clock may be apart at most from what is known of it: it may jump, as in a failover.
const clockGap = time.Hour
