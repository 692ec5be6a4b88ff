package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
)

// The naive system is what one would write first: it looks into Redis and
// decides in the caller, writes to Redis, writes to Postgres, and hands the
// rest to asynq. It is not exact: two requests at once are both let through,
// and a crash between any two of the writes leaves them in disagreement. Its
// pools are as large as helps it.
type naive struct{ service }

const (
	naiveKey         = "the-one-key"
	naiveDatabase    = 32
	naiveRedis       = 256
	naiveTask        = "push"
	workerGoroutines = 256 // of all workers
)

// naiveSchema has the columns and indexes that the naive system needs.
const naiveSchema = `
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
func (l *lab) newNaive(ctx context.Context) (*naive, error) {
	n := &naive{service{key: naiveKey}}
	var err error
	if n.database, err = l.servers.newDatabase(ctx, "naive"); err != nil {
		return nil, err
	}
	conn, err := pgx.Connect(ctx, n.database)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, naiveSchema); err != nil {
		return nil, err
	}
	if n.redis, err = l.servers.emptyRedis(ctx, naiveIndex); err != nil {
		return nil, err
	}
	if n.addr, err = process.FreeAddr(); err != nil {
		return nil, err
	}
	p, err := l.start("naive api", []string{"ADDR=" + n.addr, "DATABASE_URL=" + n.database, "REDIS_URL=" + n.redis}, l.self, "role-naive-api")
	if err != nil {
		return nil, err
	}
	return n, p.AwaitListen(ctx, n.addr)
}

func (n *naive) startWorker(l *lab, providerURL string) (*process.Process, error) {
	return l.start("naive worker", []string{"PROVIDER_URL=" + providerURL, "DATABASE_URL=" + n.database, "REDIS_URL=" + n.redis},
		l.self, "role-naive-worker")
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
