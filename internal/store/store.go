package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/audit"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/bulk"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/partitions"
	"github.com/sendquota/sendquota/internal/store/pauses"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/policies"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/recipients"
	"github.com/sendquota/sendquota/internal/store/records"
	"github.com/sendquota/sendquota/internal/store/schedules"
	"github.com/sendquota/sendquota/internal/store/suppressions"
	"github.com/sendquota/sendquota/internal/store/tenantchannels"
	"github.com/sendquota/sendquota/internal/store/terms"
	"github.com/sendquota/sendquota/internal/store/webhooks"
)

// Config configures a [Store].
type Config = pg.Config

// The subjects of a [Store], under names that do not collide when they are embedded.
type (
	db              = pg.DB
	accountsStore   = accounts.Store
	attemptsStore   = attempts.Store
	auditStore      = audit.Store
	auditLog        = auditlogs.Store
	bulkStore       = bulk.Store
	campaignsStore  = campaigns.Store
	campaignRuns    = campaigns.Runs
	partitionsStore = partitions.Store
	pausesStore     = pauses.Store
	policiesStore   = policies.Store
	pushesStore     = pushes.Store
	recipientsStore = recipients.Store
	recordsStore    = records.Store
	schedulesStore  = schedules.Store
	suppressedStore = suppressions.Store
	channelsStore   = tenantchannels.Store
	termsStore      = terms.Store
	webhooksStore   = webhooks.Store
)

// Store combines all subjects on one connection to Postgres. Programs open it and pass each package the parts that it
// needs. It is safe for concurrent use.
type Store struct {
	*db
	*accountsStore
	*attemptsStore
	*auditStore
	*auditLog
	*bulkStore
	*campaignsStore
	*campaignRuns
	*partitionsStore
	*pausesStore
	*policiesStore
	*pushesStore
	*recipientsStore
	*recordsStore
	*schedulesStore
	*suppressedStore
	*channelsStore
	*termsStore
	*webhooksStore
}

// Open connects to Postgres. It succeeds while Postgres is down, because connections are made when they are needed.
func Open(ctx context.Context, databaseURL string, cfg Config) (*Store, error) {
	db, err := pg.Open(ctx, databaseURL, cfg)
	if err != nil {
		return nil, err
	}
	known := terms.New(db)
	waiting := pushes.New(db, known)
	sending := attempts.New(db, known, waiting)
	campaignStore := campaigns.New(db, waiting)
	changes := bulk.New(db, waiting)
	return &Store{
		db:              db,
		accountsStore:   accounts.New(db),
		attemptsStore:   sending,
		auditStore:      audit.New(db, known),
		auditLog:        auditlogs.New(db),
		bulkStore:       changes,
		campaignsStore:  campaignStore,
		campaignRuns:    campaigns.NewRuns(db, known, waiting, campaignStore),
		partitionsStore: partitions.New(db, known),
		pausesStore:     pauses.New(db),
		policiesStore:   policies.New(db, waiting),
		pushesStore:     waiting,
		recipientsStore: recipients.New(db, known, waiting, sending, campaignStore, changes),
		recordsStore:    records.New(db, waiting),
		schedulesStore:  schedules.New(db),
		suppressedStore: suppressions.New(db, waiting),
		channelsStore:   tenantchannels.New(db),
		termsStore:      known,
		webhooksStore:   webhooks.New(db),
	}, nil
}
