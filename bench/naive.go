package main

import (
	_ "embed" // for the schema
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The naive system is the obvious first design: it reads Redis and decides in the caller, writes to Redis, writes to
// Postgres, and hands the rest to asynq. It is not exact: two requests at once are both accepted, and a crash between
// any two of the writes leaves them inconsistent. Its pools have the size that suits it best.
type naive struct {
	service
	database string // URL
}

const (
	naiveKey         = "the-one-key"
	naiveDatabase    = 32
	naiveRedis       = 256
	naiveTask        = "push"
	workerGoroutines = 256 // of all workers
)

//go:embed naive.sql
var naiveSchema string

// naivePush is a push as it comes in, and as it goes through asynq.
type naivePush struct {
	ID        string          `json:"id"`
	Recipient string          `json:"recipient"`
	Channel   string          `json:"channel"`
	Category  string          `json:"category"`
	SendAt    time.Time       `json:"send_at"`
	Message   json.RawMessage `json:"message"`
	Status    string          `json:"status,omitempty"`
}

// newNaive sets a naive system up and starts its HTTP server.
func (l *lab) newNaive() *naive {
	database := l.servers.Postgres(l)
	n := &naive{service{l: l, db: testenv.Connect(l, database), redis: l.servers.Redis(l), addr: testenv.FreeAddr(l), key: naiveKey}, database}
	n.exec(naiveSchema)
	p := l.startRole("naive api", "role-naive-api", "ADDR="+n.addr, "DATABASE_URL="+database, "REDIS_URL="+n.redis)
	l.check(p.AwaitListen(l.Context(), n.addr))
	return n
}

func (n *naive) startWorker(providerURL string) *process.Process {
	return n.l.startRole("naive worker", "role-naive-worker", "PROVIDER_URL="+providerURL, "DATABASE_URL="+n.database, "REDIS_URL="+n.redis)
}

// asynqConfig is the same for all workers: internal/queue's.
func asynqConfig() asynq.Config {
	return asynq.Config{
		Concurrency:              workerGoroutines,
		TaskCheckInterval:        100 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		LogLevel:                 asynq.ErrorLevel,
	}
}
