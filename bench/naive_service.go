package main

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// naiveService takes pushes.
type naiveService struct {
	db    *pgxpool.Pool
	rdb   redisclient.Client
	tasks *asynq.Client
}

func openNaiveDatabase(t testenv.T) *pgxpool.Pool {
	db, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL")+"&pool_max_conns="+strconv.Itoa(naiveDatabase))
	testenv.Check(t, err)
	t.Cleanup(db.Close)
	return db
}

// runNaiveService is the process of the naive HTTP server.
func runNaiveService(t testenv.T) {
	rdb := openRedis(t, os.Getenv("REDIS_URL"), naiveRedis)
	s := &naiveService{db: openNaiveDatabase(t), rdb: rdb, tasks: asynq.NewClientFromRedisClient(rdb.(redis.UniversalClient))}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/pushes", s.submit)
	server := &http.Server{Addr: os.Getenv("ADDR"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(t.Context(), func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		t.Fatal(err)
	}
}

func (s *naiveService) submit(w http.ResponseWriter, r *http.Request) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+naiveKey)) != 1 {
		http.Error(w, "unknown key", http.StatusUnauthorized)
		return
	}
	var p naivePush
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&p); err != nil || p.Recipient == "" || p.Message == nil {
		http.Error(w, "not a push", http.StatusBadRequest)
		return
	}
	if p.SendAt.IsZero() {
		p.SendAt = time.Now().UTC().Truncate(time.Second)
	}
	p.ID, p.Status = uuid.Must(uuid.NewV7()).String(), "scheduled"
	free, err := s.book(r.Context(), p)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case !free:
		http.Error(w, "quota exceeded", http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(p)
}

// book reads Redis, compares, and writes to three systems.
func (s *naiveService) book(ctx context.Context, p naivePush) (free bool, err error) {
	const day = 24 * time.Hour
	key := "bookings:" + p.Recipient
	at := p.SendAt.UnixMilli()
	booked, err := s.rdb.ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{
		Min: strconv.FormatInt(at-day.Milliseconds(), 10), Max: strconv.FormatInt(at+day.Milliseconds(), 10),
	}).Result()
	if err != nil || !placeLeft(booked, at) {
		return false, err
	}
	if err := s.rdb.ZAdd(ctx, key, redis.Z{Score: float64(at), Member: p.ID}).Err(); err != nil {
		return false, err
	}
	_, err = s.db.Exec(ctx, `INSERT INTO pushes (id, recipient, channel, category, message, send_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		p.ID, p.Recipient, p.Channel, p.Category, p.Message, p.SendAt)
	if err != nil {
		return false, err
	}
	payload, err := json.Marshal(p)
	if err != nil {
		return false, err
	}
	_, err = s.tasks.EnqueueContext(ctx, asynq.NewTask(naiveTask, payload), asynq.TaskID(p.ID), asynq.ProcessAt(p.SendAt))
	return true, err
}

// placeLeft counts the bookings near at, in ms, against the default policy.
func placeLeft(booked []redis.Z, at int64) bool {
	var minute, hour, day int
	for _, b := range booked {
		away := time.Duration(max(int64(b.Score)-at, at-int64(b.Score))) * time.Millisecond
		if away < time.Minute {
			minute++
		}
		if away < time.Hour {
			hour++
		}
		if away < 24*time.Hour {
			day++
		}
	}
	return minute < 1 && hour < 5 && day < 10
}
