// Package terms caches the policies and the pauses in force, and reads the descriptions of recipients. Every decision starts from both.
package terms

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store reads the terms of tenants and recipients.
type Store struct {
	db    *pg.DB
	Known knownTerms // as this process last read them
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	s := &Store{db: db}
	s.Known.load = s.loadTerms
	return s
}

// tenantTerms holds a tenant's terms as this process last read them. Each transaction that decides something checks, in
// the exchange that reads everything else, that they are still in force.
type tenantTerms struct {
	Version    int64         // of the policy
	Terms      booking.Terms // nil: the tenant has no policy of its own
	Described  bool          // the tenant may have described recipients
	Suppresses bool          // the tenant may have suppressed addresses
	Deleting   bool          // nothing is accepted or sent for the tenant any more
	Paused     int64         // the version of the pauses
	Pauses     pause.List    // that have not been ended; some may be over

	ChannelsVersion int64                         // of the tenant's own channels
	Channels        map[string]booking.OwnChannel // by name
}

// Or returns the tenant's own terms, or file's if it has none.
func (t tenantTerms) Or(file booking.Terms) booking.Terms { return booking.OrNone(t.Terms, file) }

// operator stands for the operator among the tenants: its pauses are of all tenants.
var operator = uuid.Nil

// knownTerms holds the terms of every tenant that this process has read. The zero value is empty.
type knownTerms struct {
	load  func(ctx context.Context, tenants []uuid.UUID) error // reads the terms in force
	mu    sync.RWMutex
	of    map[uuid.UUID]tenantTerms
	reach time.Duration // the longest of any tenant
	kinds bool          // some tenant's terms depend on the kinds of bookings
}

func (k *knownTerms) get(tenant uuid.UUID) tenantTerms {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.of[tenant]
}

func (k *knownTerms) put(tenant uuid.UUID, t tenantTerms) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[uuid.UUID]tenantTerms{}
	}
	k.of[tenant] = t
	if t.Terms != nil {
		k.reach, k.kinds = max(k.reach, t.Terms.Reach()), k.kinds || !t.Terms.Plain()
	}
}

// All returns the longest reach of any tenant's terms, and whether any terms depend on the kinds of bookings.
func (k *knownTerms) All() (reach time.Duration, kinds bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.reach, k.kinds
}

// OtherTermsError reports that a transaction chose what to read by terms that are no longer in force. Call Reload, then
// run the transaction again.
type OtherTermsError struct {
	Known   *knownTerms
	Tenants []uuid.UUID
}

func (e *OtherTermsError) Error() string { return "policies or pauses have changed" }

// Reload reads the terms that are in force now.
func (e *OtherTermsError) Reload(ctx context.Context) error { return e.Known.load(ctx, e.Tenants) }

// termsSQL reads the state of tenants, and of the operator. A tenant that never had a policy or a pause, and never described
// a recipient, may lack a row. So may an operator without pauses.
const termsSQL = `
	SELECT id, policy_version, described, deleting_at IS NOT NULL, pauses_version, channels_version, suppresses FROM tenants
	WHERE id = ANY ($1::uuid[]) AND (policy_version > 0 OR described OR suppresses OR deleting_at IS NOT NULL OR pauses_version > 0 OR channels_version > 0)
	UNION ALL SELECT ` + pg.NoID + `, 0, false, false, pauses_version, 0, false FROM installation WHERE pauses_version > 0`

// Read holds the terms that a transaction uses, and the versions that it finds in force.
type Read struct {
	known *knownTerms
	Used  map[uuid.UUID]tenantTerms
	found map[uuid.UUID]tenantTerms // with nil Terms
}

// Use returns the terms that the transaction uses for a tenant.
func (r *Read) Use(known *knownTerms, tenant uuid.UUID) tenantTerms {
	r.known = known
	t, ok := r.Used[tenant]
	if !ok {
		if r.Used == nil {
			r.Used = map[uuid.UUID]tenantTerms{operator: known.get(operator)}
		}
		t = known.get(tenant)
		r.Used[tenant] = t
	}
	return t
}

// Queue adds the query for the versions in force to a batch.
func (r *Read) Queue(b *pgx.Batch) *pgx.QueuedQuery {
	ids := make([]uuid.UUID, 0, len(r.Used))
	for tenant := range r.Used {
		ids = append(ids, tenant)
	}
	return b.Queue(termsSQL, ids)
}

// Collect reads the result of the query that Queue added.
func (r *Read) Collect(rows pgx.Rows) error {
	var (
		tenant uuid.UUID
		t      tenantTerms
	)
	r.found = make(map[uuid.UUID]tenantTerms, len(r.Used))
	_, err := pgx.ForEachRow(rows, []any{&tenant, &t.Version, &t.Described, &t.Deleting, &t.Paused, &t.ChannelsVersion, &t.Suppresses}, func() error {
		r.found[tenant] = t
		return nil
	})
	return err
}

// Check returns an [OtherTermsError] if the transaction uses terms that are not in force.
func (r *Read) Check() error {
	var other []uuid.UUID
	for tenant, used := range r.Used {
		if found := r.found[tenant]; found.Version != used.Version || found.Paused != used.Paused || found.Described != used.Described || found.Suppresses != used.Suppresses || found.Deleting != used.Deleting || found.ChannelsVersion != used.ChannelsVersion {
			other = append(other, tenant)
		}
	}
	if other != nil {
		return &OtherTermsError{r.known, other}
	}
	return nil
}

// Person returns a recipient's description. While a tenant is being deleted, all of its recipients count as opted out,
// so that waiting pushes are canceled when they become due and no push is accepted.
func (r *Read) Person(who quota.Recipient, people *People) booking.Person {
	if r.Used[who.Tenant].Deleting {
		return booking.Person{OptOuts: booking.OptOuts{All: true}}
	}
	return people.Found[who]
}

// IsOwn reports whether a push through a channel of that name goes through one of its tenant: the tenant has such a channel, or it had
// one that was deleted while the push was moved. Then nothing is sent, and the push is canceled when it is due.
func (r *Read) IsOwn(tenant uuid.UUID, name string, configured []string) bool {
	of := r.Used[tenant]
	return of.Channels[name].Version > 0 || of.ChannelsVersion > 0 && configured != nil && !slices.Contains(configured, name)
}

// OwnChannel returns the state of a tenant's own channel of that name. It has no Version if there is none.
func (r *Read) OwnChannel(tenant uuid.UUID, name string) booking.OwnChannel {
	return r.Used[tenant].Channels[name]
}

// Own returns the terms of the tenants that have a policy of their own; nil if none has.
func (r *Read) Own() map[uuid.UUID]booking.Terms {
	var own map[uuid.UUID]booking.Terms
	for tenant, t := range r.Used {
		if t.Terms != nil {
			if own == nil {
				own = map[uuid.UUID]booking.Terms{}
			}
			own[tenant] = t.Terms
		}
	}
	return own
}

// Over returns the pause that stops a push now: the operator's or the tenant's own, as the transaction uses them; nil if
// none does.
func (r *Read) Over(p *push.Push, now time.Time) *pause.Pause {
	if by := r.Used[operator].Pauses.Over(p, now); by != nil {
		return by
	}
	return r.Used[p.Tenant].Pauses.Over(p, now)
}

// Paused reports whether a pause stops a push at a time, as this process last read the pauses. It does not ask Postgres.
func (s *Store) Paused(p *push.Push, now time.Time) bool {
	return s.Known.get(operator).Pauses.Over(p, now) != nil || s.Known.get(p.Tenant).Pauses.Over(p, now) != nil
}

// Terms returns a tenant's terms as this process last read them, or file's if the tenant has none of its own. It does not
// ask Postgres, so they may be out of date; a transaction that decides something checks them with [Read.Check].
func (s *Store) Terms(tenant uuid.UUID, file booking.Terms) booking.Terms {
	return s.Known.get(tenant).Or(file)
}

// Standing returns a tenant's terms, or file's if it has none of its own, and a recipient's description. It takes no
// lock.
func (s *Store) Standing(ctx context.Context, who quota.Recipient, file booking.Terms) (booking.Standing, error) {
	terms, people, err := s.Standings(ctx, who.Tenant, []string{who.ID}, file)
	return booking.Standing{Terms: terms, Person: people[who.ID]}, err
}

// Standings returns a tenant's terms, or file's if it has none of its own, and the descriptions of recipients by id. It
// takes no lock.
func (s *Store) Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (of booking.Terms, people map[string]booking.Person, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var (
			terms Read
			read  People
		)
		t := terms.Use(&s.Known, tenant)
		for _, id := range ids {
			read.Add(tenant, push.RecipientKey(tenant, id))
		}
		b := &pgx.Batch{}
		terms.Queue(b).Query(terms.Collect)
		read.Queue(s, b).Query(read.Collect)
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		of, people = t.Or(file), make(map[string]booking.Person, len(read.Found))
		for who, p := range read.Found {
			people[who.ID] = p
		}
		return terms.Check()
	})
	return of, people, err
}
