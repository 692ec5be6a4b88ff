package rest

import (
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// Config configures an API. The zero value is useful.
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
	Callers CallerLimits

	// Stopping reports whether the program is about to stop. Every answer then closes its connection; nil: never.
	Stopping func() bool
	// Observe receives every answered request: the pattern of its route ("unmatched" if there is none), its method
	// and status, and its duration in seconds; nil: requests are not observed.
	Observe func(route, method string, status int, seconds float64)

	// Quiet has the routes that are logged at debug level.
	Quiet map[string]bool
	// Problem returns the problem for an error of the domain, or nil; nil: no error has one.
	Problem func(err error) Problemer
}

// API serves requests. See [New].
type API struct {
	keys     *keyCache
	cfg      Config
	encoders *encoders
	memory   memory

	router     *chi.Mux
	huma       huma.API
	operations []*huma.Operation // in the order of the routes
}

// Document returns the OpenAPI document.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

// Now returns the time by the clock of the API.
func (a *API) Now() time.Time { return a.cfg.Now() }
