package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
)

// Build builds commands into a folder, with these flags of `go build`. Without a
// command it builds all of them.
func Build(ctx context.Context, folder string, flags []string, commands ...string) error {
	args := slices.Concat([]string{"build", "-o", folder + "/"}, flags)
	if commands == nil {
		commands = []string{"..."}
	}
	for _, c := range commands {
		args = append(args, "github.com/sendquota/sendquota/cmd/"+c)
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return nil
}

// Config configures an Installation.
type Config struct {
	Programs string   // folder of the programs
	Database string   // URL; empty: a new, migrated database
	Migrated bool     // Database has this version's schema: tenants are made without the tool, whose starts take time
	Redis    string   // URL; empty: a new index
	Settings string   // the YAML file
	Dir      string   // of the settings and the logs; empty: a new one
	Env      []string // of all programs, besides what names the servers, the settings and the address
}

// Installation is one sendquota with a tenant. Its programs run as child
// processes of the test, with exactly the environment Env.
type Installation struct {
	T
	Config        // complete: nothing is empty
	Addr   string // of the API
	Key    string // of the tenant

	started *atomic.Int64 // processes
}

// Install makes an installation with a tenant, and starts nothing.
func Install(t T, c Config) *Installation {
	t.Helper()
	if c.Database == "" {
		c.Database, c.Migrated = Postgres(t), true
	}
	if c.Redis == "" {
		c.Redis = Redis(t)
	}
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	settings, addr := filepath.Join(c.Dir, "sendquota.yaml"), FreeAddr(t)
	Check(t, os.MkdirAll(c.Dir, 0o700))
	Check(t, os.WriteFile(settings, []byte(c.Settings), 0o600))
	c.Env = append([]string{"DATABASE_URL=" + c.Database, "REDIS_URL=" + c.Redis, "SENDQUOTA_ADDR=" + addr, "SENDQUOTA_CONFIG=" + settings, seal.KeyVariable + "=" + SealKey}, c.Env...)
	i := &Installation{T: t, Config: c, Addr: addr, started: new(atomic.Int64)}
	if !c.Migrated {
		i.Tool("migrate")
	}
	i.Key = i.Tenant("acme")
	return i
}

// Tenant makes a tenant, and returns a key of it.
func (i *Installation) Tenant(name string) (key string) {
	i.Helper()
	if !i.Migrated {
		i.Tool("tenants", "create", name)
		return strings.TrimSpace(i.Tool("keys", "create", "--tenant", name))
	}
	st, err := store.Open(i.Context(), i.Database, store.Config{MaxConns: 4, Timeout: startTime})
	Check(i, err)
	defer st.Close()
	id, _, err := st.CreateTenant(i.Context(), name)
	Check(i, err)
	_, key, err = st.CreateKey(i.Context(), apikey.NewKey{Tenant: id, Scopes: push.Scopes})
	Check(i, err)
	return key
}

// Output is the output of a program, and its exit status.
type Output struct {
	Out, Err string
	Status   int
}

// Exec runs a program to its end.
func (i *Installation) Exec(name string, args ...string) Output {
	i.Helper()
	cmd := exec.Command(filepath.Join(i.Programs, name), args...)
	var out, stderr strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = append(process.Environment(), i.Env...), &out, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		i.Fatal(err)
	}
	return Output{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Tool runs the operator's tool, which must succeed, and returns its output.
func (i *Installation) Tool(args ...string) string {
	i.Helper()
	o := i.Exec("sendquota", args...)
	if o.Status != 0 {
		i.Fatalf("sendquota %s: exit status %d\n%s%s", strings.Join(args, " "), o.Status, o.Out, o.Err)
	}
	return o.Out
}

// Start starts a program. It is killed when the test ends.
func (i *Installation) Start(name string, env ...string) *process.Process {
	i.Helper()
	return i.StartCommand(process.Command{Name: name, Path: filepath.Join(i.Programs, name), Env: env})
}

// StartCommand starts any command, with the environment of the programs besides
// its own. It is killed when the test ends.
func (i *Installation) StartCommand(c process.Command) *process.Process {
	i.Helper()
	c.Env = append(i.Env[:len(i.Env):len(i.Env)], c.Env...)
	c.Log = filepath.Join(i.Dir, fmt.Sprintf("%s-%d.log", c.Name, i.started.Add(1)))
	return StartCommand(i.T, c)
}

// StartAPI starts the API and waits until it is ready.
func (i *Installation) StartAPI(env ...string) *process.Process {
	i.Helper()
	p := i.Start("api", env...)
	i.AwaitReady(p)
	return p
}

// AwaitReady waits until the API is ready.
func (i *Installation) AwaitReady(p *process.Process) {
	i.Helper()
	Check(i.T, p.AwaitReady(i.Context(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+i.Addr+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", res.Status)
		}
		return nil
	}))
}

// StartCommand starts a command. It is killed when the test ends; if that failed,
// its log is shown.
func StartCommand(t T, c process.Command) *process.Process {
	t.Helper()
	p, err := process.Start(c)
	Check(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s said:\n%s", p.Name, p.Log())
		}
	})
	Finally(t, p.Kill)
	return p
}
