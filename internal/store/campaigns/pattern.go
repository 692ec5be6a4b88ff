package campaigns

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
)

// Setting the pattern of a schedule locks the campaign FOR KEY SHARE. A deletion, or a change by a caller that only has
// the scope to draft, locks it FOR UPDATE and then searches for schedules in a separate statement. So the later of the two
// sees the earlier one's change.

// mostNamed limits how many schedules a refusal names.
const mostNamed = 10

// KeepPattern locks a schedule's pattern against deletion until the transaction ends. It returns [recurrence.ErrNoPattern] if
// there is no such campaign, and does nothing for a schedule without one.
func KeepPattern(ctx context.Context, tx pgx.Tx, p *recurrence.Schedule) error {
	if p.Campaign == uuid.Nil {
		return nil
	}
	tag, err := tx.Exec(ctx, `SELECT FROM campaigns WHERE id = $1 AND tenant_id = $2 FOR KEY SHARE`, p.Campaign, p.Tenant)
	if err == nil && tag.RowsAffected() == 0 {
		return recurrence.ErrNoPattern
	}
	return err
}

// lockOwnDraft locks a draft for a change. It returns a [*push.ScopeError] if the draft is the pattern of schedules and the
// caller only has the scope to draft, because the schedules would send the change. The lock is as strong as a deletion's,
// so that no schedule can get the draft as its pattern until the commit.
func lockOwnDraft(ctx context.Context, tx pgx.Tx, by push.Caller, id uuid.UUID, done string) (broadcast.Campaign, error) {
	p, err := lockDraft(ctx, tx, by.Tenant, id, "UPDATE", done)
	if err != nil || by.May(push.ScopeCampaignsWrite) {
		return p, err
	}
	schedules, err := schedulesOf(ctx, tx, p)
	if err == nil && schedules != "" {
		err = &push.ScopeError{Scope: push.ScopeCampaignsWrite, Detail: fmt.Sprintf(
			"the campaign is the pattern of these schedules: %s; they send the change, so it needs the scope %s", schedules, push.ScopeCampaignsWrite)}
	}
	return p, err
}

// patternOfNone returns a [*broadcast.StateError] if a campaign is the pattern of schedules.
func patternOfNone(ctx context.Context, tx pgx.Tx, p broadcast.Campaign) error {
	schedules, err := schedulesOf(ctx, tx, p)
	if err == nil && schedules != "" {
		err = &broadcast.StateError{Campaign: p, Detail: fmt.Sprintf(
			"the campaign is the pattern of these schedules: %s; delete them, or give them another pattern, before you delete it", schedules)}
	}
	return err
}

// schedulesOf lists the ids of the schedules that have a campaign as their pattern; empty if none has. It includes paused
// and ended schedules, which can be resumed.
func schedulesOf(ctx context.Context, tx pgx.Tx, p broadcast.Campaign) (string, error) {
	rows, _ := tx.Query(ctx, `SELECT id::text FROM schedules WHERE campaign_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2`, p.ID, mostNamed+1)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if len(ids) > mostNamed {
		ids = append(ids[:mostNamed], "and others")
	}
	return strings.Join(ids, ", "), err
}
