package app

import (
	"time"

	"github.com/sendquota/sendquota/internal/upkeep"
)

const (
	day         = 24 * time.Hour
	bulkKept    = 30 * day
	shadowsKept = 90 * day
)

// retention lists the records that workers remove, with their lifetimes and the intervals of the loops. upkeep.NewKeeper drops
// partitions (pushes, attempts, Idempotency-Keys, the audit log). Findings of audits are removed at the end of a pass, and sessions at a
// sign-in.
func (a *App) retention() []upkeep.Retention {
	pushes := a.cfg.Retention.Pushes
	return []upkeep.Retention{
		{Records: "events of webhooks", Keep: a.cfg.Webhooks.Retention, Every: 10 * time.Second, Portion: 500, Remove: a.store.SweepDeliveries},
		{Records: "runs of schedules", Keep: pushes, Every: time.Minute, Portion: 1000, Remove: a.store.SweepSchedules},
		{Records: "lines of audiences", Every: time.Minute, Portion: 5000, Remove: a.store.SweepUploads},
		{Records: "recipients of campaigns", Keep: pushes, Every: time.Minute, Portion: 2000, Remove: a.store.SweepCampaigns},
		{Records: "bulk changes", Keep: bulkKept, Every: time.Minute, Portion: 5000, Remove: a.store.SweepBulk},
		{Records: "counts of shadow rules", Keep: shadowsKept, Every: time.Hour, Portion: 5000, Remove: a.store.SweepShadows},
		{Records: "numbers of hours", Keep: 401 * day, Every: time.Hour, Portion: 5000, Remove: a.store.SweepStats},
	}
}
