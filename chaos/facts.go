package main

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// row is a push in Postgres.
type row struct {
	ID, Recipient, Channel, Category, Status, LastError string
	SendAt, ExpiresAt                                   time.Time
}

// send is an attempt in Postgres.
type send struct {
	Push, Outcome       string
	Attempt             int
	Started, LeaseUntil time.Time
	Ended               *time.Time
}

// lost reports whether the attempt counted as lost.
func (s send) lost() bool { return s.Ended != nil && s.Ended.Equal(s.LeaseUntil) }

// facts hold everything that is known when everything has settled.
type facts struct {
	ops        []op
	rows       map[string]row
	sends      map[string][]send // by push, in order
	paused     []pausedSpan
	suppressed []suppressed
	arrivals   []testenv.Arrival

	schedules []settledSchedule
	recurs    []recurs
	campaigns []settledCampaign
	lines     []campaignLine
	bulks     []settledBulk
	bulkLines []bulkLine

	partitions map[string]bool // all that there are, and whether their table has them
	noticed    int             // violations that the workers' audit has found
}

func (b *bundle) facts() *facts {
	conn := testenv.Connect(b, b.Database)
	f := &facts{paused: b.paused, suppressed: b.suppressed, ops: b.history.all(), rows: map[string]row{}, sends: map[string][]send{}, arrivals: b.provider.Arrivals()}
	rows, _ := conn.Query(b.Context(), `SELECT id::text, recipient, channel, category, status, last_error, send_at, expires_at FROM pushes`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	testenv.Check(b, err)
	for _, r := range all {
		f.rows[r.ID] = r
	}
	rows, _ = conn.Query(b.Context(), `SELECT push_id::text, coalesce(outcome, ''), attempt, started_at, lease_until, ended_at FROM sends ORDER BY push_id, attempt`)
	sends, err := pgx.CollectRows(rows, pgx.RowToStructByPos[send])
	testenv.Check(b, err)
	for _, s := range sends {
		f.sends[s.Push] = append(f.sends[s.Push], s)
	}
	f.readSchedules(b, conn)
	f.readCampaigns(b, conn)
	f.readBulks(b, conn)
	f.readUpkeep(b, conn)
	return f
}
