package devstack

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/process"
)

// keptDatabase is the database in a Postgres of our own.
const keptDatabase = "sendquota"

// StartPostgres finds or starts Postgres alone. See Start.
func StartPostgres(ctx context.Context, c Config) (*Server, error) {
	c = c.prepared()
	if c.DatabaseURL != "" && !c.OwnProcess {
		return &Server{Name: "postgres", URL: c.DatabaseURL}, nil
	}
	return c.obtain(ctx, service{
		name:    "Postgres",
		program: "postgres",
		apt:     "postgresql",
		brew:    "postgresql@17",
		binary:  func() (string, error) { return c.searchPaths.postgresBin(0) },
		recipe:  c.postgresRecipe,
	})
}

func (c Config) postgresRecipe(ctx context.Context, f *folder) (recipe, error) {
	cl, err := c.openCluster(ctx, f)
	if err != nil {
		return recipe{}, err
	}
	orphan := syscall.SIGINT // "fast": roll back, write everything, end
	if f.throwAway {
		orphan = syscall.SIGQUIT // "immediate": the data is never read again
	}
	binary := filepath.Join(cl.bin, "postgres")
	r := recipe{
		binary: binary,
		command: func(addr string) process.Command {
			_, port, _ := net.SplitHostPort(addr)
			args := []string{"-D", cl.data, "-c", "port=" + port}
			for _, s := range c.postgresSettings() {
				args = append(args, "-c", s)
			}
			return process.Command{Path: binary, Args: args, End: syscall.SIGINT, Orphan: orphan}
		},
		ready: cl.answers,
		url: func(addr string) string {
			user := url.User("postgres")
			if cl.password != "" {
				user = url.UserPassword("postgres", cl.password)
			}
			return (&url.URL{Scheme: "postgres", User: user, Host: addr, Path: "/" + keptDatabase, RawQuery: "sslmode=disable"}).String()
		},
	}
	if cl.empty {
		err = c.fill(ctx, f, cl, r)
	}
	return r, err
}

// postgresSettings are passed on the command line, so that a change of theirs
// also reaches data that exists.
func (c Config) postgresSettings() []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"unix_socket_directories=", // none: its folder would need an owner, a name, a sweep
		"max_connections=1000",     // tests start several programs each, and as many tests run at a time as there are processors
		fmt.Sprintf("shared_buffers=%dMB", cmp.Or(c.SharedBuffers, 128)),
		// A test that drops or truncates many partitions takes many locks.
		"max_locks_per_transaction=256",
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
		"log_destination=stderr",
	}
	if !c.durable() {
		// These lose data with the machine only. Without synchronous_commit
		// a killed Postgres would forget what it has acknowledged, and tests
		// that kill it would blame us.
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	return append(settings, c.PostgresSettings...) // the last one counts
}

// answers checks that the server at this URL accepts connections and has this cluster's data, and is not another one
// that took the port first. It creates the URL's database if it is missing.
func (cl *cluster) answers(ctx context.Context, url string, _ int) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var data string
	var made bool
	const look = "SELECT current_setting('data_directory'), EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := conn.QueryRow(ctx, look, keptDatabase).Scan(&data, &made); err != nil {
		return err
	}
	if data != cl.data {
		return fmt.Errorf("another server, with data in %s, answers on the port", data)
	}
	if !made {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+keptDatabase)
	}
	return err
}

// Exec connects to a Postgres and runs one statement.
func Exec(ctx context.Context, url, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement, args...)
	return err
}

func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "a URL that cannot be read"
	}
	return u.Redacted()
}
