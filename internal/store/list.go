package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// Filter chooses among a tenant's pushes. Zero fields choose all.
type Filter struct {
	Recipient, Channel, Category string
	Status                       push.Status
	From, Until                  time.Time // From ≤ send time < Until
}

// Position is a place in a list: behind the push with this send time and id.
type Position struct {
	SendAt time.Time
	ID     uuid.UUID
}

// List returns up to limit of a tenant's pushes behind a position, by send
// time and id.
func (s *Store) List(ctx context.Context, tenant uuid.UUID, f Filter, after Position, limit int) ([]push.Push, error) {
	args := []any{[16]byte(tenant), after.SendAt, [16]byte(after.ID), limit}
	where := []string{`p.tenant_id = $1`, `(p.send_at, p.id) > ($2, $3)`}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	from := `pushes`
	if f.Recipient != "" {
		args = append(args, push.RecipientKey(tenant, f.Recipient))
		from = fmt.Sprintf(`(SELECT * FROM pushes WHERE recipient_key = $%d OFFSET 0)`, len(args)) // by the recipient's index, not the tenant's
		add(`p.recipient = $%d`, f.Recipient)
	}
	if f.Status != "" {
		add(`p.status = $%d`, string(f.Status))
	}
	if f.Channel != "" {
		add(`p.channel = $%d`, f.Channel)
	}
	if f.Category != "" {
		add(`p.category = $%d`, f.Category)
	}
	if !f.From.IsZero() {
		add(`p.send_at >= $%d`, f.From)
	}
	if !f.Until.IsZero() {
		add(`p.send_at < $%d`, f.Until)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	rows, _ := s.pool.Query(ctx, `SELECT `+pushColumns+` FROM `+from+` p WHERE `+strings.Join(where, ` AND `)+` ORDER BY p.send_at, p.id LIMIT $4`, args...)
	pushes, err := pgx.CollectRows(rows, collectPush)
	return pushes, classify(err)
}
