package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/zone"
)

// If a tenant has its own policy or has described recipients, the rules differ from push to push. Its promises and sends are
// checked by the same arithmetic that decided them, one recipient after another.

// ownForSome is the condition that rules may differ for a row p: its tenant has had its own policy or has described a
// recipient, or the file's rules are not the same for every push.
const ownForSome = `(@various::bool OR p.tenant_id IN (SELECT id FROM tenants WHERE policy_version > 0 OR described))`

const (
	// mostChecked is the number of bookings, or of sends, of one recipient that are checked: the first ones.
	mostChecked = 20_000
	// mostVersions is the number of policies of one tenant that are read: the latest ones. Pushes accepted before them are
	// not checked.
	mostVersions = 1000
	// mostHistories is the maximum number of tenants with cached policies.
	mostHistories = 100
)

// personColumns selects the description of a recipient r, if there is one.
const personColumns = `coalesce(r.time_zone, ''), coalesce(r.limits, '{}'), r.updated_at, coalesce(r.opt_out_all, false), coalesce(r.opt_out_channels, '{}'), coalesce(r.opt_out_categories, '{}')`

// joinPerson joins the description of a recipient.
const joinPerson = ` LEFT JOIN recipients r ON r.shard = (p.recipient_key & 255) AND r.recipient_key = p.recipient_key AND r.tenant_id = p.tenant_id AND r.recipient = p.recipient`

// oneByOne orders the rows by recipient.
const oneByOne = ` ORDER BY p.recipient_key, p.tenant_id, p.recipient COLLATE "C"`

// promisesSQL reads pushes that hold places. The plan of a push counts its changes, and each finished attempt is
// one. Without a further change, the push was not moved since it was created. A push that waits for its send time was
// not moved since its last change.
func promisesSQL(from, checked string) string {
	return `
	SELECT p.tenant_id, p.recipient_key, p.recipient, p.id, p.channel, p.category, p.send_at, p.send_at,
		CASE WHEN p.plan - 1 <> p.attempts AND p.attempts = 0 AND p.status = 'scheduled' AND p.next_at = p.send_at THEN p.updated_at ELSE p.created_at END,
		CASE WHEN p.plan - 1 = p.attempts THEN p.created_at ELSE p.updated_at END,
		` + checked + `, ` + personColumns + `
	FROM ` + from + ` p` + joinPerson + `
	WHERE ` + ownForSome + oneByOne + `, p.send_at, p.id`
}

// sendsSQL reads the attempts that may have reached the provider.
func sendsSQL(from, checked string) string {
	return `
	SELECT p.tenant_id, p.recipient_key, p.recipient, p.push_id, p.channel, p.category, coalesce(p.handed_at, p.ended_at, p.started_at), p.started_at,
		p.started_at, p.started_at, ` + checked + `, ` + personColumns + `
	FROM ` + from + ` p` + joinPerson + `
	WHERE p.outcome IS DISTINCT FROM 'refused' AND ` + ownForSome + oneByOne + `, p.started_at, p.push_id, p.attempt`
}

// termsAudit checks recipients with rules of their own.
type termsAudit struct {
	store *Store
	file  booking.Terms
	known map[uuid.UUID]booking.History
	found func(f Finding, at time.Time)
}

func (s *Store) newTermsAudit(file booking.Terms, found func(Finding, time.Time)) *termsAudit {
	return &termsAudit{store: s, file: file, known: map[uuid.UUID]booking.History{}, found: found}
}

// checkedRecipient holds the rows of one recipient.
type checkedRecipient struct {
	tenant    uuid.UUID
	key       int64
	recipient string
	person    booking.Person
	described time.Time // of the last description; zero: none
	rows      []booking.Checked
}

// run checks all recipients that a statement reads: their sends, or else their promises.
func (a *termsAudit) run(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs, sends bool) error {
	rows, err := tx.Query(ctx, sql, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	var of checkedRecipient
	for rows.Next() {
		var (
			next      checkedRecipient
			row       booking.Checked
			zoneName  string
			described *time.Time
		)
		out := &next.person.OptOuts
		if err := rows.Scan(&next.tenant, &next.key, &next.recipient, &row.ID, &row.Kind.Channel, &row.Kind.Category, &row.At, &row.Began,
			&row.Since, &row.Until, &row.Check, &zoneName, &next.person.Limits, &described, &out.All, &out.Channels, &out.Categories); err != nil {
			return err
		}
		if next.tenant != of.tenant || next.key != of.key || next.recipient != of.recipient {
			if err := a.check(ctx, of, sends); err != nil {
				return err
			}
			if of = next; described != nil {
				of.described = *described
			}
			if zoneName != "" {
				of.person.Zone, _ = zone.Load(zoneName)
			}
		}
		if len(of.rows) < mostChecked {
			of.rows = append(of.rows, row)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return a.check(ctx, of, sends)
}

// check reports violations of one recipient. It skips an erased recipient, which has another name and no description
// any more.
func (a *termsAudit) check(ctx context.Context, of checkedRecipient, sends bool) error {
	if len(of.rows) == 0 || push.RecipientKey(of.tenant, of.recipient) != of.key {
		return nil
	}
	history, err := a.history(ctx, of.tenant)
	if err != nil {
		return err
	}
	for _, j := range booking.AgainstOptOuts(of.person.OptOuts, of.described, of.rows) {
		a.found(Finding{"opted-out", of.tenant, of.recipient, j.ID, fmt.Sprintf("accepted or sent at %s, when the recipient had opted out since %s", stamp(j.Since), stamp(of.described))}, j.At)
	}
	check, find := "promised-window", history.IllegalBookings
	if sends {
		check, find = "actual-window", history.IllegalSends
	}
	for _, b := range find(of.person.Person, of.described, of.rows) {
		r := b.Violation.Rule
		f := Finding{check, of.tenant, of.recipient, b.ID, fmt.Sprintf("no place at %s beside %d other pushes (rule %s, limit %d, %d of them reserved)",
			stamp(b.At), len(b.Violation.Conflicts)+b.Violation.Omitted, r.Name, r.Limit, r.Reserved)}
		if r.Quiet {
			f.Check, f.Detail = "quiet-hours", fmt.Sprintf("%s lies in quiet hours (%s)", stamp(b.At), r.Name)
		}
		a.found(f, b.At)
	}
	return nil
}

// history returns the policies of a tenant. It may read them later than the snapshot, because policies are only ever
// added.
func (a *termsAudit) history(ctx context.Context, tenant uuid.UUID) (h booking.History, err error) {
	h, ok := a.known[tenant]
	if ok {
		return h, nil
	}
	h.File = a.file
	rows, _ := a.store.db.Pool.Query(ctx, `
		SELECT at, document FROM (SELECT version, at, document FROM policies WHERE tenant_id = $1 ORDER BY version DESC LIMIT $2) p ORDER BY version`,
		tenant, mostVersions)
	var (
		at       time.Time
		document []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&at, &document}, func() error {
		v := booking.Version{At: at}
		if document != nil {
			terms, err := a.store.terms.Compile(document)
			if err != nil {
				return fmt.Errorf("policy of %s of tenant %s: %w", stamp(at), tenant, err)
			}
			v.Terms = terms
		}
		h.Versions = append(h.Versions, v)
		return nil
	})
	if h.Cut = len(h.Versions) == mostVersions; len(a.known) >= mostHistories {
		clear(a.known)
	}
	a.known[tenant] = h
	return h, err
}

// historicReach returns the longest reach of all policies, present and past, of tenants and of the file. some is false
// if the same rules apply to every push.
func (s *Store) historicReach(ctx context.Context, tx pgx.Tx, file booking.Terms) (reach time.Duration, some bool, err error) {
	file = booking.OrNone(file)
	err = tx.QueryRow(ctx, `SELECT $1 OR EXISTS (SELECT FROM tenants WHERE policy_version > 0 OR described)`, !file.Plain()).Scan(&some)
	if err != nil || !some {
		return 0, some, err
	}
	reach = file.Reach()
	rows, _ := tx.Query(ctx, `SELECT DISTINCT document::text FROM policies WHERE document IS NOT NULL`)
	var document json.RawMessage
	_, err = pgx.ForEachRow(rows, []any{(*[]byte)(&document)}, func() error {
		terms, err := s.terms.Compile(document)
		if err == nil {
			reach = max(reach, terms.Reach())
		}
		return err
	})
	return reach, true, err
}
