package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// tenantTerms are the terms of a tenant as this process saw them last. Each transaction that decides something looks
// whether they are still in force, beside whatever else it reads.
type tenantTerms struct {
	version   int64         // of the policy
	terms     booking.Terms // nil: the tenant has no policy of its own
	described bool          // something may be known of the tenant's recipients
	deleting  bool          // nothing is accepted or sent for the tenant any more
}

// or returns the tenant's own terms, or those of all who have none.
func (t tenantTerms) or(file booking.Terms) booking.Terms { return booking.OrNone(t.terms, file) }

// knownTerms are those of all tenants whose terms this process has seen. The zero value has none.
type knownTerms struct {
	load  func(ctx context.Context, tenants []uuid.UUID) error // reads the terms in force
	mu    sync.RWMutex
	of    map[uuid.UUID]tenantTerms
	reach time.Duration // of all
	kinds bool          // any of them asks for kinds
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
	if t.terms != nil {
		k.reach, k.kinds = max(k.reach, t.terms.Reach()), k.kinds || !t.terms.Plain()
	}
}

// all returns how far the terms of any tenant reach, and whether any of them asks what kinds bookings are of.
func (k *knownTerms) all() (reach time.Duration, kinds bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.reach, k.kinds
}

// otherTermsError: what was read was chosen by terms that are not in force any more. The transaction is to be run again
// with those that are.
type otherTermsError struct {
	known   *knownTerms
	tenants []uuid.UUID
}

func (e *otherTermsError) Error() string { return "policies have changed" }

func (e *otherTermsError) reload(ctx context.Context) error { return e.known.load(ctx, e.tenants) }

// termsSQL reads what a process has to know of tenants. The row of a tenant that never had a policy, nor described a
// recipient, need not be there.
const termsSQL = `
	SELECT id, policy_version, described, deleting_at IS NOT NULL FROM tenants
	WHERE id = ANY ($1::uuid[]) AND (policy_version > 0 OR described OR deleting_at IS NOT NULL)`

// termsRead are the terms that a transaction uses, and those that it finds in force.
type termsRead struct {
	known *knownTerms
	used  map[uuid.UUID]tenantTerms
	found map[uuid.UUID]tenantTerms // without their terms
}

// use returns the terms that the transaction uses for a tenant.
func (r *termsRead) use(known *knownTerms, tenant uuid.UUID) tenantTerms {
	r.known = known
	t, ok := r.used[tenant]
	if !ok {
		if r.used == nil {
			r.used = map[uuid.UUID]tenantTerms{}
		}
		t = known.get(tenant)
		r.used[tenant] = t
	}
	return t
}

// queue asks what is in force.
func (r *termsRead) queue(b *pgx.Batch) *pgx.QueuedQuery {
	ids := make([]uuid.UUID, 0, len(r.used))
	for tenant := range r.used {
		ids = append(ids, tenant)
	}
	return b.Queue(termsSQL, ids)
}

// collect reads the answer.
func (r *termsRead) collect(rows pgx.Rows) error {
	var (
		tenant uuid.UUID
		t      tenantTerms
	)
	r.found = make(map[uuid.UUID]tenantTerms, len(r.used))
	_, err := pgx.ForEachRow(rows, []any{&tenant, &t.version, &t.described, &t.deleting}, func() error {
		r.found[tenant] = t
		return nil
	})
	return err
}

// check reports with an [otherTermsError] that what the transaction uses is not in force.
func (r *termsRead) check() error {
	var other []uuid.UUID
	for tenant, used := range r.used {
		if found := r.found[tenant]; found.version != used.version || found.described != used.described || found.deleting != used.deleting {
			other = append(other, tenant)
		}
	}
	if other != nil {
		return &otherTermsError{r.known, other}
	}
	return nil
}

// person returns what is known of a recipient. No recipient of a tenant that is being deleted wants anything: so pushes that wait are
// canceled when they are due, and none is accepted.
func (r *termsRead) person(who quota.Recipient, people *peopleRead) booking.Person {
	if r.used[who.Tenant].deleting {
		return booking.Person{OptOuts: booking.OptOuts{All: true}}
	}
	return people.found[who]
}

// own lists the terms of tenants that have their own.
func (r *termsRead) own() map[uuid.UUID]booking.Terms {
	var own map[uuid.UUID]booking.Terms
	for tenant, t := range r.used {
		if t.terms != nil {
			if own == nil {
				own = map[uuid.UUID]booking.Terms{}
			}
			own[tenant] = t.terms
		}
	}
	return own
}

// loadTerms reads the terms that are in force for tenants.
func (s *Store) loadTerms(ctx context.Context, tenants []uuid.UUID) error {
	rows, _ := s.pool.Query(ctx, `
		SELECT t.id, t.policy_version, t.described, t.deleting_at IS NOT NULL, p.document
		FROM tenants t LEFT JOIN policies p ON p.tenant_id = t.id AND p.version = t.policy_version
		WHERE t.id = ANY ($1::uuid[])`, tenants)
	var (
		tenant   uuid.UUID
		found    tenantTerms
		document []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&tenant, &found.version, &found.described, &found.deleting, &document}, func() error {
		t := found
		if document != nil {
			terms, err := s.compile(document)
			if err != nil {
				return fmt.Errorf("policy %d of tenant %s: %w", t.version, tenant, err)
			}
			t.terms = terms
		}
		s.terms.put(tenant, t)
		return nil
	})
	return err
}

// compile returns the terms that a stored policy means. It was valid when it was stored; a channel that was taken out of
// the configuration since then is one that nothing is sent through.
func (s *Store) compile(document []byte) (*policy.Terms, error) {
	var d policy.Document
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	return d.Compile(d.ChannelNames())
}

// Terms returns the terms of a tenant as this process saw them last, without asking Postgres; those of the file if the
// tenant has none of its own. They may have changed: what decides looks.
func (s *Store) Terms(tenant uuid.UUID, file booking.Terms) booking.Terms {
	return s.terms.get(tenant).or(file)
}

// peopleSQL reads what is known of recipients.
const peopleSQL = `
	SELECT r.tenant_id, r.recipient, r.time_zone, r.addresses, r.opt_out_all, r.opt_out_channels, r.opt_out_categories, r.limits{attributes}
	FROM unnest($1::bigint[]) AS k CROSS JOIN LATERAL (
		SELECT * FROM recipients WHERE shard = ANY ($3::smallint[]) AND shard = (k & 255)::smallint AND recipient_key = k
		OFFSET 0 -- keeps the next line from choosing another index
	) r WHERE r.tenant_id = ANY ($2::uuid[])`

// peopleRead are the recipients that a transaction wants to know more of.
type peopleRead struct {
	keys    []int64
	tenants []uuid.UUID
	found   map[quota.Recipient]booking.Person

	withAttributes bool // they are read, too
	attributes     map[quota.Recipient]json.RawMessage
}

func (r *peopleRead) add(tenant uuid.UUID, key int64) {
	r.keys = append(r.keys, key)
	if n := len(r.tenants); n == 0 || r.tenants[n-1] != tenant {
		r.tenants = append(r.tenants, tenant)
	}
}

func (r *peopleRead) queue(s *Store, b *pgx.Batch) *pgx.QueuedQuery {
	attributes := ""
	if r.withAttributes {
		attributes = ", r.attributes"
	}
	return b.Queue(s.joining(strings.Replace(peopleSQL, "{attributes}", attributes, 1)), r.keys, r.tenants, shardsOf(r.keys...))
}

func (r *peopleRead) collect(rows pgx.Rows) error {
	var (
		who      quota.Recipient
		zoneName string
		p        booking.Person

		attributes []byte
	)
	r.found = make(map[quota.Recipient]booking.Person, len(r.keys))
	columns := []any{&who.Tenant, &who.ID, &zoneName, &p.Addresses, &p.OptOuts.All, &p.OptOuts.Channels, &p.OptOuts.Categories, &p.Limits}
	if r.withAttributes {
		columns, r.attributes = append(columns, &attributes), make(map[quota.Recipient]json.RawMessage, len(r.keys))
	}
	_, err := pgx.ForEachRow(rows, columns, func() error {
		if r.withAttributes {
			r.attributes[who] = bytes.Clone(attributes)
		}
		if zoneName != "" {
			// One that this build does not know any more counts as none.
			p.Zone, _ = zone.Load(zoneName)
		}
		r.found[who] = p
		p = booking.Person{}
		return nil
	})
	return err
}

// Standing returns the terms of a tenant, which are those of the file if it has none of its own, and what is known of a
// recipient. It takes no lock.
func (s *Store) Standing(ctx context.Context, who quota.Recipient, file booking.Terms) (booking.Standing, error) {
	terms, people, err := s.Standings(ctx, who.Tenant, []string{who.ID}, file)
	return booking.Standing{Terms: terms, Person: people[who.ID]}, err
}

// Standings returns the terms of a tenant, which are those of the file if it has none of its own, and what is known of some
// recipients. It takes no lock.
func (s *Store) Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (of booking.Terms, people map[string]booking.Person, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		var (
			terms termsRead
			read  peopleRead
		)
		t := terms.use(&s.terms, tenant)
		for _, id := range ids {
			read.add(tenant, push.RecipientKey(tenant, id))
		}
		b := &pgx.Batch{}
		terms.queue(b).Query(terms.collect)
		read.queue(s, b).Query(read.collect)
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		of, people = t.or(file), make(map[string]booking.Person, len(read.found))
		for who, p := range read.found {
			people[who.ID] = p
		}
		return terms.check()
	})
	return of, people, err
}
