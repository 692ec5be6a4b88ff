package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
)

// StartPgBouncer starts a PgBouncer in transaction mode, in front of the Postgres of a URL. connections is the size of
// its pool for each database. settings have the form "name = value" and are added to its own. The environment variable
// PGBOUNCER may name the program; otherwise it is found or installed like servers are. It uses only the fields of c for
// finding and progress.
func StartPgBouncer(ctx context.Context, c Config, postgres string, connections int, settings ...string) (*Server, error) {
	c = c.prepared()
	c.OwnProcess = true
	upstream, err := url.Parse(postgres)
	if err != nil || upstream.Host == "" {
		return nil, errors.New("start PgBouncer: the URL of Postgres has no host")
	}
	settings = append([]string{
		"pool_mode = transaction",
		fmt.Sprintf("default_pool_size = %d", connections),
		"max_client_conn = 1000",
		"auth_type = any", // it listens on loopback, and the database is a throw-away
		"admin_users = postgres",
		"unix_socket_dir =",
		"server_login_retry = 1", // seconds
		"listen_addr = 127.0.0.1",
	}, settings...)
	return c.obtain(ctx, service{
		name:     "PgBouncer",
		variable: "PGBOUNCER",
		program:  "pgbouncer",
		apt:      "pgbouncer",
		brew:     "pgbouncer",
		binary:   c.searchPaths.pgbouncerBin,
		recipe: func(_ context.Context, f *folder) (recipe, error) {
			binary, err := c.searchPaths.pgbouncerBin()
			return recipe{
				binary: binary,
				command: func(addr string) process.Command {
					file := filepath.Join(f.data, "pgbouncer.ini")
					_ = os.WriteFile(file, []byte(pgbouncerSettings(upstream, addr, settings)), 0o644) // without it the start fails, and says so
					return process.Command{Path: binary, Args: []string{file}, End: syscall.SIGINT, Orphan: syscall.SIGKILL}
				},
				ready: pgbouncerAnswers,
				url: func(addr string) string {
					u := *upstream
					u.Host, u.User = addr, url.User("postgres")
					return u.String()
				},
			}, err
		},
	})
}

func pgbouncerSettings(upstream *url.URL, addr string, settings []string) string {
	host, port := upstream.Hostname(), upstream.Port()
	login := "user=" + upstream.User.Username()
	if password, ok := upstream.User.Password(); ok {
		login += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	if port == "" {
		port = "5432"
	}
	_, own, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("[databases]\n* = host=%s port=%s %s\n[pgbouncer]\nlisten_port = %s\n%s\n", host, port, login, own, strings.Join(settings, "\n"))
}

// pgbouncerAnswers asks the pooler itself, also while Postgres is down. Another
// server that took the port first has no such database.
func pgbouncerAnswers(ctx context.Context, url string, _ int) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.Database = "pgbouncer"
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "SHOW VERSION")
	return err
}

// pgbouncerBin returns the path of PgBouncer.
func (p *searchPaths) pgbouncerBin() (string, error) {
	if path := os.Getenv("PGBOUNCER"); path != "" {
		return exec.LookPath(path)
	}
	for _, path := range append([]string{"pgbouncer"}, p.pgbouncer...) {
		if path, err := exec.LookPath(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no pgbouncer in PATH or the usual folders")
}
