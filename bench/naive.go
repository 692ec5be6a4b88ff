package main

import (
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The naive system is what one would write first: it looks into Redis and
// decides in the caller, writes to Redis, writes to Postgres, and hands the
// rest to asynq. It is not exact: two requests at once are both let through,
// and a crash between any two of the writes leaves them in disagreement. Its
// pools are as large as helps it.
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

// naiveSchema has the columns and indexes that the naive system needs, and
// nothing else.
const naiveSchema = `
	DROP SCHEMA public CASCADE;
	CREATE SCHEMA public;
	CREATE TABLE pushes (
		id         uuid PRIMARY KEY,
		recipient  text NOT NULL,
		channel    text NOT NULL,
		category   text NOT NULL,
		message    json NOT NULL,
		send_at    timestamptz NOT NULL,
		status     text NOT NULL DEFAULT 'scheduled',
		created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
		updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
	);
	CREATE INDEX pushes_recipient ON pushes (recipient, send_at);
	CREATE TABLE sends (
		push_id             uuid NOT NULL,
		attempt             int NOT NULL,
		recipient           text NOT NULL,
		started_at          timestamptz NOT NULL,
		ended_at            timestamptz NOT NULL,
		outcome             text NOT NULL,
		provider_message_id text NOT NULL,
		PRIMARY KEY (push_id, attempt)
	);
	CREATE INDEX sends_recipient ON sends (recipient, started_at);`

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
	n := &naive{service{l: l, db: l.connect(database), redis: l.servers.Redis(l), addr: testenv.FreeAddr(l), key: naiveKey}, database}
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
