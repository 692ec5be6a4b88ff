package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
)

// servers are Postgres and Redis, shared by all systems under test. Each
// system has a database and a Redis index of its own in them.
type servers struct {
	stack     *devstack.Stack
	postgres  *pgx.Conn     // for statements outside of any system's database
	redis     *redis.Client // for statements about the server as a whole
	databases int
}

// The Redis indexes of the systems. asynq's keys have no prefix that could
// keep them apart.
const (
	oursIndex  = 1
	naiveIndex = 2
	noopIndex  = 3
	otherIndex = 4 // of a second sendquota
)

func startServers(ctx context.Context) (*servers, error) {
	stack, err := devstack.Start(ctx, devstack.Config{Durable: true, OwnProcess: true, Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	s := &servers{stack: stack}
	if s.postgres, err = pgx.Connect(ctx, stack.DatabaseURL); err != nil {
		return nil, errors.Join(err, stack.Close())
	}
	o, err := redis.ParseURL(stack.RedisURL)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.redis = redis.NewClient(o)
	return s, nil
}

func (s *servers) close() error {
	var err error
	if s.redis != nil {
		err = s.redis.Close()
	}
	return errors.Join(err, s.postgres.Close(context.Background()), s.stack.Close())
}

// newDatabase makes an empty database and returns its URL.
func (s *servers) newDatabase(ctx context.Context, system string) (string, error) {
	s.databases++
	name := fmt.Sprintf("%s_%d", system, s.databases)
	if _, err := s.postgres.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	u, err := url.Parse(s.stack.DatabaseURL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// emptyRedis empties a Redis index and returns its URL.
func (s *servers) emptyRedis(ctx context.Context, index int) (string, error) {
	u, err := url.Parse(s.stack.RedisURL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + strconv.Itoa(index)
	client, err := openRedis(u.String(), 1)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return u.String(), client.FlushDB(ctx).Err()
}

func openRedis(url string, connections int) (*redis.Client, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.PoolSize = connections
	return redis.NewClient(o), nil
}

// checkpoint writes out what earlier rounds have left behind, so that a round
// does not pay for another's dirty pages.
func (s *servers) checkpoint(ctx context.Context) error {
	_, err := s.postgres.Exec(ctx, "CHECKPOINT")
	return err
}

// redisMemory returns how many bytes Redis uses for data: without what the
// connections and the append-only file have buffered just now.
func (s *servers) redisMemory(ctx context.Context) (int64, error) {
	info, err := s.redis.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for name, sign := range map[string]int64{"used_memory": 1, "mem_clients_normal": -1, "mem_aof_buffer": -1} {
		n, err := strconv.ParseInt(infoField(info, name), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO of redis has no %s", name)
		}
		sum += sign * n
	}
	return sum, nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *servers) versions(ctx context.Context) (postgres, redis string, err error) {
	if err := s.postgres.QueryRow(ctx, "SHOW server_version").Scan(&postgres); err != nil {
		return "", "", err
	}
	info, err := s.redis.Info(ctx, "server").Result()
	postgres, _, _ = strings.Cut(postgres, " ")
	return postgres, infoField(info, "redis_version"), err
}
