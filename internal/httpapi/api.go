package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Config is what an API may be told. The zero value is useful.
type Config struct {
	Log            *slog.Logger     // nil: silent
	Now            func() time.Time // nil: time.Now
	RequestTimeout time.Duration    // how long a request may take; 0: 10 s
	Memory         int64            // bytes that requests and answers may take; 0: DefaultMemory

	// Neighbours are told of every tenant whose key comes with a request; nil: each is taken to be alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]
	// Computing has turns at reading large bodies and writing large answers; nil: there is always one.
	Computing *bulkhead.Computing[uuid.UUID]
	// Limiter decides about the speed limits of tenants; nil: nobody does, and asking is a 503.
	Limiter limiter
	// Callers are the speed limits of callers; none by default.
	Callers CallerLimits
	// Webhooks are those of the tenants; only the paths below /v1/webhooks need them.
	Webhooks *notify.Webhooks
	// Policies are those of the tenants; only the paths below /v1/policy need them.
	Policies *schedule.Policies

	// Schedules are those of the tenants; only the paths below /v1/schedules need them.
	Schedules *recurring.Service
	// Campaigns are those of the tenants; only the paths below /v1/campaigns, and /v1/caps, need them.
	Campaigns   *campaign.Service
	BulkChanges *bulk.Service
	// Simulator simulates them.
	Simulator *campaign.Simulator

	// Flows know how the pushes of the tenants get on; only /v1/status needs them.
	Flows flowStore
	// Failures groups what has failed; only /v1/failures needs it.
	Failures failureStore
	// Audits are those of the workers; only /v1/audits needs them.
	Audits Audits
	// Channels are the ways out; only /v1/channels needs them.
	Channels Channels
	// Keys are those of the tenants, and MaxKeys how many live ones each may have; only the paths below /v1/keys need them.
	Keys    keyring
	MaxKeys int
	// Users are those of the console, MaxUsers how many each tenant may have, 0: any number, and PublicURL where browsers find
	// the console, without a path; only the paths below /v1/users need them.
	Users     users
	MaxUsers  int
	PublicURL string

	// BesideConsole says that the console is at the same origin. There is no /docs/try then: it runs a program of others, which would act with the
	// session of whoever has signed in.
	BesideConsole bool

	// Health says, for /readyz, whether the program can do its work; nil: it can.
	Health *health.Checker
	// Stopping reports whether the program is about to stop: it is not ready then, and every answer closes its
	// connection; nil: it never is.
	Stopping func() bool
	// Metrics serves /metrics; nil: there is no such page.
	Metrics http.Handler
	// Observe is told of every answered request: the pattern of its route ("unmatched" if there is none), its method
	// and status, and how many seconds it took; nil: nobody.
	Observe func(route, method string, status int, seconds float64)
}

// api serves requests. See [New].
type api struct {
	svc      *schedule.Service
	keys     *keyCache
	cfg      Config
	encoders *encoders
	memory   memory
	flows    *moments[push.Flow]
	channels *moments[channelsView]

	exports, simulations *bulkhead.Bulkhead[uuid.UUID] // that go on

	router     *chi.Mux
	huma       huma.API
	operations []*huma.Operation // in the order of the routes
}

// New returns the whole API: /v1, which wants a key that keys knows, and the open pages /healthz, /readyz, /metrics,
// /openapi.json, /docs and, unless the console is at the same origin, /docs/try.
func New(svc *schedule.Service, keys authenticator, cfg Config) http.Handler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func() bool { return false }
	}
	if cfg.Health == nil {
		cfg.Health = health.New(health.Config{Stopping: cfg.Stopping})
	}
	if cfg.Callers.Limiter == nil {
		cfg.Callers.Limiter = cfg.Limiter
	}
	a := &api{
		svc: svc, keys: newKeyCache(keys, cfg.Now, cfg.Log), cfg: cfg,
		encoders: newEncoders(), memory: newMemory(cfg.Memory), exports: newExports(), simulations: newSimulations(), router: chi.NewMux(),
	}
	a.flows, a.channels = newMoments(cfg.Now, a.countFlow), newMoments(cfg.Now, a.countChannels)
	a.huma = humachi.New(a.router, huma.Config{OpenAPI: newOpenAPI()})
	a.routes()
	return a
}

// call is one request on its way through a handler.
type call struct {
	w         *responseRecorder
	r         *http.Request
	caller    push.Caller
	memory    memory
	computing *bulkhead.Computing[uuid.UUID]

	op        *operation
	bad       fieldErrors     // what is wrong with the request
	id, part  uuid.UUID       // in the path: of a thing, and of a part of it
	who       quota.Recipient // in the path instead
	unchanged push.Unchanged  // see operation.match
}

// begin reads what the row of the table of routes tells of a request. It returns what is wrong, unless the handler reads more.
func (c *call) begin() error {
	if c.op.query == nil {
		nothing.readQuery(c.r, &struct{}{}, &c.bad)
	}
	c.readPath()
	if c.op.match {
		c.unchanged = c.ifUnchanged(&c.bad)
	}
	if c.op.query != nil || c.op.body != nil {
		return nil
	}
	if c.op.memory > 0 {
		if err := c.reserve(c.op.memory); err != nil {
			return err
		}
	}
	return c.noBody(&c.bad)
}

// readPath reads the ids in the path.
func (c *call) readPath() {
	for i, p := range c.op.ids {
		switch {
		case p.text:
			c.who = c.recipientID(&c.bad)
		case i == 0:
			c.id = c.pathID(p.name, &c.bad)
		default:
			c.part = c.pathID(p.name, &c.bad)
		}
	}
	if strings.HasPrefix(c.op.path, pushPath) && c.id != uuid.Nil {
		c.note(c.id)
	}
}

// compute does what keeps a processor busy for long, and waits for nothing, when it is the tenant's turn.
func (c *call) compute(do func() error) error {
	return c.computing.Do(c.r.Context(), c.caller.Tenant, do)
}

// handle documents an operation and serves it. An error becomes a problem.
func (a *api) handle(o *operation, op *huma.Operation) {
	a.operations = append(a.operations, op)
	a.huma.OpenAPI().AddOperation(op)
	handler := func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		rec := w.(*responseRecorder)
		rec.route = op.Path
		c := &call{w: rec, r: r, memory: a.memory, computing: a.cfg.Computing, op: o}
		var err error
		if o.scope != "" {
			if err = a.admit(rec, c, o.scope); err == nil {
				err = c.begin()
			}
		}
		if err == nil {
			err = o.serve(c)
		}
		if err != nil {
			a.fail(rec, r, err)
		}
	}
	a.huma.Adapter().Handle(op, handler)
	if op.Method == http.MethodGet {
		head := *op
		head.Method = http.MethodHead
		a.huma.Adapter().Handle(&head, handler)
	}
}

// page serves an open page outside of the documentation.
func (a *api) page(path string, h http.Handler) {
	if h == nil {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.(*responseRecorder).route = path
		h.ServeHTTP(w, r)
	}
	a.router.Get(path, serve)
	a.router.Head(path, serve)
}

// param reads a parameter of the path. chi leaves it escaped where the path has characters, like an escaped slash, that
// Path cannot tell apart.
func (c *call) param(name string) string {
	v := chi.URLParam(c.r, name)
	if c.r.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

func (a *api) notFound(w http.ResponseWriter, r *http.Request) {
	a.miss(w.(*responseRecorder), r, &refusal{kind: notFound, detail: "the path does not exist; /docs lists all paths"})
}

func (a *api) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	allow := http.Header{}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if a.router.Match(chi.NewRouteContext(), method, path) {
			allow.Add("Allow", method)
		}
	}
	a.miss(w.(*responseRecorder), r, &refusal{kind: methodNotAllowed, detail: "the path does not support this method", header: allow})
}
