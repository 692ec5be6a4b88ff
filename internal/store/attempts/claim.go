package attempts

import (
	"context"
	"slices"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
)

// Claim claims the oldest due push of a recipient for sending, if the recipient's actual sends leave room for one now. It
// shares a transaction with concurrent claims.
func (s *Store) Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error) {
	if err := ctx.Err(); err != nil {
		return booking.Claim{}, err
	}
	o.Token = uuid.New()
	return s.claimGroups.Do(o)
}

// ClaimAll claims for different recipients, in one transaction per lane that waits for no lock: if another transaction
// holds a recipient's lock, the outcome is [booking.Wait]. It returns one claim for each order, in the same order.
func (s *Store) ClaimAll(ctx context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	if err := ctx.Err(); err != nil || len(orders) == 0 {
		return nil, err
	}
	orders = slices.Clone(orders)
	for i := range orders {
		orders[i].Token = uuid.New()
	}
	if observe := s.db.Observe("claim"); observe != nil {
		observe(len(orders))
	}
	// A caller that is stopped in the middle must still learn of the claims that were committed.
	ctx = context.WithoutCancel(ctx)
	claims, some := make([]booking.Claim, len(orders)), false
	for part := range pg.ByLane(orders, s.db.Cfg.Lanes, claimKey) {
		of := make([]booking.ClaimOrder, len(part))
		for n, i := range part {
			of[n] = orders[i]
		}
		made, err := s.claimTogether(ctx, of)
		switch {
		case err == nil:
			some = true
		case !some:
			return nil, err
		default: // keep the claims of other lanes
			made = slices.Repeat([]booking.Claim{{Outcome: booking.Again}}, len(part))
		}
		for n, i := range part {
			claims[i] = made[n]
		}
	}
	return claims, nil
}

func claimKey(o booking.ClaimOrder) int64 { return o.RecipientKey }

func (s *Store) claimTogether(ctx context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	var claims []booking.Claim
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		var err error
		claims, err = s.claim(ctx, c, s.db.Locking(earlier == 0), orders) // an earlier run may not have ended yet
		return err
	})
	return claims, err
}

// claim runs the transaction once.
func (s *Store) claim(ctx context.Context, c *pgxpool.Conn, locks pg.Locking, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	first := firstOrders(orders)
	found, err := s.readClaims(ctx, c, locks, orders, first)
	if err != nil {
		return nil, err
	}
	claims := make([]booking.Claim, len(orders))
	w := newClaimWrite(found.now, s.db.Layouts.Pushes(), s)
	for i, o := range orders {
		if earlier := first[o.RecipientKey]; earlier < i {
			claims[i] = o.Behind(orders[earlier], found.now)
			continue
		}
		state := found.of(o.RecipientKey)
		claims[i] = state.Decide(o, found.now)
		w.add(i, o.RecipientKey, claims[i], state)
	}
	failpoint.Hit(failpoint.ClaimLocked)
	return claims, w.commit(ctx, c, claims)
}

// firstOrders returns the index of each recipient's first order, by recipient key.
func firstOrders(orders []booking.ClaimOrder) map[int64]int {
	first := make(map[int64]int, len(orders))
	for i, o := range orders {
		if _, seen := first[o.RecipientKey]; !seen {
			first[o.RecipientKey] = i
		}
	}
	return first
}

// pausedSQL reports whether a pause covers a push now, as pause.Pause decides.
const pausedSQL = `
	SELECT EXISTS (SELECT FROM pauses WHERE coalesce(tenant_id, ` + pg.NoID + `) IN ($1, ` + pg.NoID + `) AND ended_at IS NULL AND (until IS NULL OR until > clock_timestamp())
		AND CASE scope WHEN 'all' THEN true WHEN 'channel' THEN name = $2 WHEN 'category' THEN name = $3 WHEN 'campaign' THEN name = $4 END)`

// PausedNow reports whether a pause stops a claimed push now. Claims find out by themselves: it is for a worker that was held
// up since its claim.
func (s *Store) PausedNow(ctx context.Context, p push.Push) (paused bool, err error) {
	campaign := ""
	if p.Campaign != uuid.Nil {
		campaign = p.Campaign.String()
	}
	err = s.db.Pool.QueryRow(ctx, pausedSQL, p.Tenant, p.Channel, p.Category, campaign).Scan(&paused)
	return paused, pg.Classify(err)
}
