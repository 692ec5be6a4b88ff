package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/httpapi/accounts"
	"github.com/sendquota/sendquota/internal/httpapi/campaigns"
	"github.com/sendquota/sendquota/internal/httpapi/channels"
	"github.com/sendquota/sendquota/internal/httpapi/limits"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pauses"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Config configures the API. The zero value is useful: operations on a missing part must not be called.
type Config struct {
	Log            *slog.Logger     // nil: silent
	Now            func() time.Time // nil: time.Now
	RequestTimeout time.Duration    // the longest time of a request; 0: 10 s
	Memory         int64            // bytes of all requests and answers; 0: DefaultMemory

	// Neighbours is notified of every tenant with a request; nil: each tenant counts as alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]
	// Computing gives turns for reading large bodies and writing large answers; nil: no request waits.
	Computing *bulkhead.Computing[uuid.UUID]
	// Callers limits the rate of callers; by default, there is no limit.
	Callers rest.CallerLimits
	// Stopping reports whether the program is about to stop. It is not ready then, and every answer closes its connection; nil: never.
	Stopping func() bool
	// Observe receives every answered request: the pattern of its route ("unmatched" if there is none), its method
	// and status, and its duration in seconds; nil: requests are not observed.
	Observe func(route, method string, status int, seconds float64)

	Limiter     limits.Limiter       // of speed limits; nil: /v1/limits answers 503
	Webhooks    *notify.Webhooks     // for /v1/webhooks
	Policies    *schedule.Policies   // for /v1/policy
	Schedules   *recurring.Service   // for /v1/schedules
	Campaigns   *campaign.Service    // for /v1/campaigns and /v1/caps
	BulkChanges *bulk.Service        // for /v1/bulk-changes
	Pauses      pauses.Store         // for /v1/pauses
	Simulator   *campaign.Simulator  // of Campaigns
	Flows       records.FlowStore    // for /v1/status
	Failures    records.FailureStore // for /v1/failures
	Audits      records.Audits       // for /v1/audits
	Channels    records.Channels     // for /v1/channels
	OwnChannels channels.Service     // for /v1/channels/{name}

	Keys      accounts.Keys  // for /v1/keys
	MaxKeys   int            // live keys of a tenant
	Users     accounts.Users // for /v1/users
	MaxUsers  int            // users of a tenant; 0: no limit
	PublicURL string         // of the console, without a path

	// BesideConsole reports that the console has the same origin. Then there is no /docs/try: it runs third-party code, which could
	// use the session of a signed-in user.
	BesideConsole bool

	Health  *health.Checker // for /readyz; nil: the program can always serve
	Metrics http.Handler    // serves /metrics; nil: there is no such page

	exports, simulations *bulkhead.Bulkhead[uuid.UUID] // nil: new ones
}

// New returns the whole API: /v1, for callers with a key that keys knows, and the open pages /healthz, /readyz, /metrics,
// /openapi.json, /docs and, unless the console is at the same origin, /docs/try.
func New(svc *schedule.Service, keys rest.Authenticator, cfg Config) http.Handler {
	if cfg.Health == nil {
		cfg.Health = health.New(health.Config{Stopping: cfg.Stopping})
	}
	if cfg.Callers.Limiter == nil && cfg.Limiter != nil {
		cfg.Callers.Limiter = cfg.Limiter
	}
	if cfg.exports == nil {
		cfg.exports = lists.NewExports()
	}
	if cfg.simulations == nil {
		cfg.simulations = campaigns.NewSimulations()
	}
	doc := newDocument()
	a := rest.New(keys, doc, rest.Config{
		Log: cfg.Log, Now: cfg.Now, RequestTimeout: cfg.RequestTimeout, Memory: cfg.Memory, Neighbours: cfg.Neighbours, Computing: cfg.Computing,
		Callers: cfg.Callers, Stopping: cfg.Stopping, Observe: cfg.Observe, Problem: problemOf,
		Quiet: map[string]bool{healthPath: true, readyPath: true, metricsPath: true},
	})
	s := rest.NewSpec(a, doc)
	a.Add(s, knownPathParams, cfg.operations(s, svc, a.Now))
	cfg.pages(a)
	return a
}
