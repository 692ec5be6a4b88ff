package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
)

// service is one system under test: a database, a Redis index and an HTTP
// server.
type service struct {
	database, redis string // URLs
	addr, key       string
}

// query reads one row of the system's database.
func (s *service) query(ctx context.Context, sql string, args []any, into ...any) error {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, sql, args...).Scan(into...)
}

// analyze has Postgres look at the tables as they are now, when everything is
// delivered. Autovacuum would do so at some time, most likely at such a one; a
// plan that is good for an empty backlog only must not be a matter of luck.
func (s *service) analyze(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "ANALYZE")
	return err
}

// holds fails unless a table has exactly n rows.
func (s *service) holds(ctx context.Context, table string, n int) error {
	var rows int
	if err := s.query(ctx, "SELECT count(*) FROM "+table, nil, &rows); err != nil {
		return err
	}
	if rows != n {
		return fmt.Errorf("%d rows in %s, should be %d", rows, table, n)
	}
	return nil
}

// sendquota is the system that this is all about, with the default policy.
type sendquota struct {
	service
	l        *lab
	env      []string
	metrics  string // address of the worker's metrics
	gathered string // how many calls the last worker did together
}

// newSendquota sets a new system up, as an operator would, and starts its API.
// Its channel posts to the provider's URL. More settings can follow, as YAML.
func (l *lab) newSendquota(ctx context.Context, providerURL string, more ...string) (*sendquota, error) {
	s := &sendquota{l: l}
	var err error
	if s.database, err = l.servers.newDatabase(ctx, "sendquota"); err != nil {
		return nil, err
	}
	if s.redis, err = l.servers.emptyRedis(ctx, l.index); err != nil {
		return nil, err
	}
	if s.addr, err = process.FreeAddr(); err != nil {
		return nil, err
	}
	if s.metrics, err = process.FreeAddr(); err != nil {
		return nil, err
	}
	settings := filepath.Join(l.dir, filepath.Base(s.database)+".yaml")
	yaml := fmt.Sprintf("http: {drain: 0s}\nchannels:\n  push: {type: webhook, url: %q, allow_private_addresses: true}\n", providerURL) + strings.Join(more, "")
	settings, _, _ = strings.Cut(settings, "?")
	if err := os.WriteFile(settings, []byte(yaml), 0o600); err != nil {
		return nil, err
	}
	s.env = []string{"DATABASE_URL=" + s.database, "REDIS_URL=" + s.redis, "SENDQUOTA_ADDR=" + s.addr, "SENDQUOTA_CONFIG=" + settings, "SENDQUOTA_METRICS_ADDR=" + s.metrics}
	for _, args := range [][]string{{"migrate"}, {"tenants", "create", "bench"}} {
		if _, err := s.operate(ctx, args...); err != nil {
			return nil, err
		}
	}
	if s.key, err = s.operate(ctx, "keys", "create", "--tenant", "bench"); err != nil {
		return nil, err
	}
	api, err := s.startProgram("api")
	if err != nil {
		return nil, err
	}
	return s, api.AwaitListen(ctx, s.addr)
}

// operate runs the operator's tool.
func (s *sendquota) operate(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(s.l.programs, "sendquota"), args...)
	cmd.Env = s.env
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("sendquota %s: %w\n%s%s", strings.Join(args, " "), err, out, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// audit proves from the database that the guarantees were kept.
func (s *sendquota) audit(ctx context.Context) error {
	_, err := s.operate(ctx, "audit")
	return err
}

// startProgram starts one of the two services, or, for a profile, this
// program in its place.
func (s *sendquota) startProgram(kind string) (*process.Process, error) {
	if s.l.profiles == "" {
		return s.l.start(kind, s.env, filepath.Join(s.l.programs, kind))
	}
	path, err := s.l.profilePath(kind)
	if err != nil {
		return nil, err
	}
	return s.l.start(kind, append(s.env, profileVariable+"="+path), s.l.self, "role-"+kind)
}

func (s *sendquota) startWorker() (*process.Process, error) { return s.startProgram("worker") }

// stopWorker ends the worker, after asking how well it gathers calls.
func (s *sendquota) stopWorker(ctx context.Context, p *process.Process) error {
	var err error
	s.gathered, err = groups(ctx, s.metrics)
	return errors.Join(err, s.l.stop(p))
}

// submit is a load of single pushes. Its caller sets the end.
func (s *service) submit(l *lab, sendAt string) load {
	return load{addr: s.addr, conns: 256, request: newRequest("/v1/pushes", s.key, pushBody(sendAt)), next: l.fresh(1), expect: 201}
}

const batchSize = 1000

// batches is a load of batches. Its caller sets the end.
func (s *sendquota) batches(sendAt string) load {
	return load{
		addr: s.addr, conns: 4, request: newRequest("/v1/pushes/batch", s.key, batchBody(batchSize, sendAt)),
		next: s.l.fresh(batchSize), expect: 200,
	}
}
