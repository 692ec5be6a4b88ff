//go:build !nodev

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/telemetry"
	"github.com/sendquota/sendquota/internal/user"
)

// devCommands are for developers' machines. The build tag nodev leaves them and their dependencies out.
type devCommands struct {
	Dev dev `cmd:"" help:"Run everything on this machine: its own Postgres and Redis, a demo tenant, API and worker."`
}

type dev struct {
	Dir             string `default:".local" help:"The folder that keeps the data between runs."`
	DatabaseURL     string `name:"database-url" placeholder:"URL" help:"Use this Postgres instead of starting one. A database with a tenant other than demo is refused. DATABASE_URL is ignored."`
	RedisURL        string `name:"redis-url" placeholder:"URL" help:"Use this Redis instead of starting one. REDIS_URL is ignored."`
	Config          string `placeholder:"FILE" help:"Use the settings of this YAML file, and send through its channels. SENDQUOTA_CONFIG is ignored."`
	PrivateWebhooks bool   `help:"Permit webhooks of tenants to loopback and private networks, to try them with a server on this machine."`
}

// Run starts the servers, prints how to try them, and serves until a signal stops it.
func (c dev) Run() error {
	cfg, err := c.settings(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	if err := refuseTenants(ctx, string(cfg.DatabaseURL)); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	release, err := devstack.Lock(filepath.Join(c.Dir, "dev.lock"))
	if errors.Is(err, devstack.ErrInUse) {
		return c.runsAlready()
	}
	if err != nil {
		return err
	}
	defer func() { _ = release() }()
	_ = os.Remove(c.addressPath()) // left by a killed run
	defer os.Remove(c.addressPath())
	if cfg.SealKey == "" {
		if cfg.SealKey, err = c.sealKey(); err != nil {
			return err
		}
	}
	stack, err := devstack.Start(ctx, devstack.Config{
		Dir: c.Dir, DatabaseURL: string(cfg.DatabaseURL), RedisURL: string(cfg.RedisURL), AllowMiniredis: true, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	cfg.HTTP.Drain = 0 // callers have nowhere else to go
	cfg.Console.Enabled = true
	cfg.Webhooks.AllowPrivateAddresses = cfg.Webhooks.AllowPrivateAddresses || c.PrivateWebhooks
	cfg.DatabaseURL, cfg.RedisURL = config.Secret(stack.Postgres.URL), config.Secret(stack.Redis.URL)
	return errors.Join(c.serve(ctx, cfg), stack.Close())
}

// serve runs the programs on running servers.
func (c dev) serve(ctx context.Context, cfg config.Config) error {
	logPath := filepath.Join(c.Dir, "sendquota.log")
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	log := telemetry.NewLog(logFile, cfg.LogLevel)

	if _, err := pg.Migrate(ctx, string(cfg.DatabaseURL), pg.MigrateConfig{Contract: true, Tell: tell}); err != nil {
		return err
	}
	key, admin, err := c.demo(ctx, cfg)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	if cfg.File == "" {
		inbox, err := newInbox(os.Stdout)
		if err != nil {
			return err
		}
		g.Go(func() error { return inbox.run(ctx) })
		cfg.Channels = append([]config.Channel{inbox.channel(cfg.Channels[0])}, cfg.Channels...)
	}
	a, err := app.Open(ctx, cfg, log)
	if err != nil {
		return err
	}
	ready := make(chan string, 1)
	g.Go(func() error { return a.RunBoth(ctx, ready) })
	g.Go(func() error {
		select {
		case addr := <-ready:
			if err := os.WriteFile(c.addressPath(), []byte(addr), 0o644); err != nil {
				return err
			}
			welcome(os.Stdout, addr, key, logPath, cfg.Channels[0].Name, cfg.File == "")
			invite(os.Stdout, cfg, addr, admin)
		case <-ctx.Done():
		}
		return nil
	})
	return errors.Join(g.Wait(), a.Close())
}

// addressPath returns the path of the file with the address of the running API, for a second run.
func (c dev) addressPath() string { return filepath.Join(c.Dir, "address") }

func (c dev) runsAlready() error {
	elsewhere := "stop that one with Ctrl-C, or run a second one: SENDQUOTA_ADDR=127.0.0.1:8090 " + os.Args[0] + " dev --dir .local2"
	addr, err := os.ReadFile(c.addressPath())
	if err != nil {
		return fmt.Errorf("another sendquota is starting or stopping in %s; %s", c.Dir, elsewhere)
	}
	return fmt.Errorf("sendquota runs already, at http://%s, with its data in %s; %s", addr, c.Dir, elsewhere)
}

// demo returns a key of the demo tenant, and an invitation for its first admin.
func (c dev) demo(ctx context.Context, cfg config.Config) (key string, admin invitation, err error) {
	st, err := store.Open(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: 4})
	if err != nil {
		return "", admin, err
	}
	defer st.Close()
	tenant, _, err := st.CreateTenant(ctx, demoTenant)
	if err != nil {
		return "", admin, err
	}
	if key, err = c.demoKey(ctx, st, tenant); err != nil {
		return "", admin, err
	}
	admin, err = demoAdmin(ctx, st, tenant)
	return key, admin, err
}

// invitation has the token of a link that sets the password of an admin of the demo tenant. The zero value is no invitation.
type invitation struct{ email, token string }

// demoAdmin returns an invitation for an admin of the demo tenant, and creates the admin if there is none. It returns no invitation
// if an admin can sign in already, or if the demo's own user has another role now.
func demoAdmin(ctx context.Context, st *store.Store, tenant uuid.UUID) (invitation, error) {
	users, err := st.Users(ctx, tenant)
	if err != nil {
		return invitation{}, err
	}
	users = slices.DeleteFunc(users, func(u user.User) bool { return u.Role != user.Admin || u.DisabledAt != nil })
	if slices.ContainsFunc(users, func(u user.User) bool { return u.HasPassword || u.External }) {
		return invitation{}, nil
	}
	token, link := user.NewLink()
	var u user.User
	if len(users) > 0 {
		u, err = st.LinkUser(ctx, nil, tenant, users[0].ID, link)
	} else {
		u, err = st.CreateUser(ctx, user.New{Tenant: tenant, Email: demoEmail, Name: "Admin", Role: user.Admin, Link: link})
	}
	if errors.Is(err, user.ErrEmailTaken) {
		return invitation{}, nil
	}
	return invitation{u.Email, token}, err
}

// demoEmail is the address of the first admin of the demo tenant.
const demoEmail = "admin@demo.example"

// demoKey returns a key of the demo tenant: the key of the last run, if the database still has it.
func (c dev) demoKey(ctx context.Context, st *store.Store, tenant uuid.UUID) (string, error) {
	path := filepath.Join(c.Dir, "demo-key")
	if old, err := os.ReadFile(path); err == nil {
		caller, err := st.Key(ctx, accounts.HashKey(string(old)))
		if err == nil && caller.Tenant == tenant && len(caller.Scopes) == len(push.Scopes) { // an older key lacks newer scopes
			return string(old), nil
		}
	}
	_, key, err := st.CreateKey(ctx, apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
	if err != nil {
		return "", err
	}
	return key, os.WriteFile(path, []byte(key), 0o600)
}

// invite prints how to sign in to the console of an API that listens at addr.
func invite(w io.Writer, cfg config.Config, addr string, admin invitation) {
	cfg.Addr = addr // the actual address, also for port 0
	at := cfg.ConsoleURL()
	if admin.token == "" {
		fmt.Fprintf(w, "The console is at %s/console\n\n", at)
		return
	}
	fmt.Fprintf(w, "The console: open this once, and choose a password for %s\n\n  %s%s%s\n\n", admin.email, at, user.LinkPath, admin.token)
}

func welcome(w io.Writer, addr, key, logPath, channel string, inbox bool) {
	then := "Then watch the first one arrive here."
	if !inbox {
		then = "The first one goes to your channel: the console shows its result."
	}
	fmt.Fprintf(w, `
sendquota is running.

  API       http://%[1]s      (reading page: http://%[1]s/docs)
  key       %[2]s
  channel   %[4]s
  log       %[3]s

Schedule a push for 15 seconds from now:

  curl -sS http://%[1]s/v1/pushes -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' \
    -d '{"recipient": "user-1", "message": {"title": "Hello"}, "send_at": "'$(date -u -d '+15 seconds' +%%FT%%TZ)'"}'

Run it twice: the second is refused, with the reason and the next free time. %[5]s
Stop with Ctrl-C; the data stays.

`, addr, key, logPath, channel, then)
}
