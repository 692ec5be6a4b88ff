package main

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// service is one system under test: a database, a Redis index and an HTTP
// server.
type service struct {
	l         *lab
	db        *pgx.Conn
	redis     string // URL
	addr, key string
}

// query reads one row of the system's database.
func (s *service) query(sql string, args []any, into ...any) {
	s.l.check(s.db.QueryRow(s.l.Context(), sql, args...).Scan(into...))
}

func (s *service) exec(sql string, args ...any) {
	_, err := s.db.Exec(s.l.Context(), sql, args...)
	s.l.check(err)
}

// sendquota is the system under test, with the default policy.
type sendquota struct {
	service
	*testenv.Installation
	metrics  string // address of the worker's metrics
	gathered string // how many calls the last worker did together
}

// nowhere is the URL of a provider that is never asked.
const nowhere = "http://127.0.0.1:9/"

// newSendquota sets a new system up, as an operator would, and starts its API.
// Its channel posts to the provider's URL. More settings can follow, as YAML.
func (l *lab) newSendquota(providerURL string, more ...string) *sendquota {
	metrics := testenv.FreeAddr(l)
	i := testenv.Install(l.T, testenv.Config{
		Programs: l.bin, Database: l.servers.Postgres(l), Redis: l.servers.Redis(l), Env: []string{"SENDQUOTA_METRICS_ADDR=" + metrics},
		Settings: fmt.Sprintf("http: {drain: 0s}\nchannels:\n  push: {type: webhook, url: %q, allow_private_addresses: true}\n", providerURL) + strings.Join(more, ""),
	})
	s := &sendquota{service: service{l, testenv.Connect(l, i.Database), i.Redis, i.Addr, i.Key}, Installation: i, metrics: metrics}
	i.AwaitReady(s.startProgram("api"))
	return s
}

// startProgram starts one of the two services, or, for a profile, this
// program in its place.
func (s *sendquota) startProgram(kind string) *process.Process {
	if s.l.profile == "" {
		return s.l.watch(s.Start(kind))
	}
	return s.l.watch(s.StartCommand(process.Command{Name: kind, Path: s.l.self, Args: []string{"role-" + kind}, Env: []string{profileVariable + "=" + s.l.profilePath(kind)}}))
}

func (s *sendquota) startWorker() *process.Process { return s.startProgram("worker") }

// stopWorker ends the worker, after reading how many calls shared its transactions.
func (s *sendquota) stopWorker(p *process.Process) {
	s.gathered = s.l.groups(s.metrics)
	s.l.stop(p)
}

// proveExact compares the answers with the stored pushes, and runs the audit.
func (s *sendquota) proveExact(what string, accepted int) {
	ok := s.holds(what, "pushes", accepted)
	if o := s.Exec("sendquota", "audit"); o.Status != 0 {
		s.l.report.fault("%s: sendquota audit: %s%s", what, o.Out, o.Err)
		ok = false
	}
	if ok {
		s.l.report.note("Exact (%s): %s pushes were answered with 201 and as many rows are in Postgres; `sendquota audit` finds no violations.", what, count(float64(accepted)))
	}
}

// holds reports a fault unless a table has exactly n rows.
func (s *sendquota) holds(what, table string, n int) bool {
	var rows int
	s.query("SELECT count(*) FROM "+table, nil, &rows)
	if rows != n {
		s.l.report.fault("%s: %d rows in %s, should be %d", what, rows, table, n)
	}
	return rows == n
}

// submit is a load of single pushes. Its caller sets the end.
func (s *service) submit(sendAt string) load {
	return load{addr: s.addr, conns: 256, requests: []*request{newRequest("POST", "/v1/pushes", s.key, pushBody(sendAt))}, next: s.l.fresh(1), expect: 201}
}

const batchSize = 1000

// batches is a load of batches. Its caller sets the end.
func (s *service) batches(sendAt string) load {
	return load{
		addr: s.addr, conns: 4, requests: []*request{newRequest("POST", "/v1/pushes/batch", s.key, batchBody(batchSize, sendAt))},
		next: s.l.fresh(batchSize), expect: 200,
	}
}
