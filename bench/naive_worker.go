package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/testenv"
)

// naiveWorker delivers: it posts, inserts and updates.
type naiveWorker struct {
	db       *pgxpool.Pool
	client   *http.Client
	provider string
}

// runNaiveWorker is the process of the naive worker.
func runNaiveWorker(t testenv.T) {
	w := &naiveWorker{
		db: openNaiveDatabase(t), provider: os.Getenv("PROVIDER_URL"),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * workerGoroutines, DisableCompression: true}},
	}
	runAsynq(t, w.deliver)
	<-t.Context().Done()
}

// runAsynq calls a handler for each task of asynq, until the process ends.
func runAsynq(t testenv.T, handle asynq.HandlerFunc) {
	server := asynq.NewServerFromRedisClient(openRedis(t, os.Getenv("REDIS_URL"), naiveRedis).(redis.UniversalClient), asynqConfig())
	testenv.Check(t, server.Start(handle))
	t.Cleanup(server.Shutdown)
}

func (w *naiveWorker) deliver(ctx context.Context, t *asynq.Task) error {
	var p naivePush
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		return err
	}
	began := time.Now()
	message, err := w.post(ctx, p, t.Payload())
	if err != nil {
		return err
	}
	_, err = w.db.Exec(ctx, `INSERT INTO sends (push_id, attempt, recipient, started_at, ended_at, outcome, provider_message_id)
		VALUES ($1, 1, $2, $3, clock_timestamp(), 'delivered', $4)`, p.ID, p.Recipient, began, message)
	if err != nil {
		return err
	}
	_, err = w.db.Exec(ctx, `UPDATE pushes SET status = 'sent', updated_at = clock_timestamp() WHERE id = $1`, p.ID)
	return err
}

// post returns the provider's id of the message.
func (w *naiveWorker) post(ctx context.Context, p naivePush, body []byte) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.provider, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", p.ID)
	res, err := w.client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the provider answered %s", res.Status)
	}
	var answer struct {
		ID string `json:"id"`
	}
	return answer.ID, json.NewDecoder(res.Body).Decode(&answer)
}
