package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
	"github.com/sendquota/sendquota/internal/webhook"
)

// asTool is the variable that makes the test binary the tool.
const asTool = "RUN_AS_TOOL"

// tool runs the tool in a process of its own, with exactly this environment.
func tool(t *testing.T, env []string, stdout io.Writer, args ...string) (stderr string, status int) {
	t.Helper()
	self, err := os.Executable()
	testenv.Check(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	var said strings.Builder
	cmd.Env, cmd.Dir = append([]string{asTool + "=1", "HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH")}, env...), t.TempDir()
	cmd.Stdout, cmd.Stderr = stdout, &said
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Error(err)
		return "", -1
	}
	return said.String(), cmd.ProcessState.ExitCode()
}

// bench is a sendquota that runs in the test, with a tenant acme.
type bench struct {
	database string
	*testing.T
	st     *store.Store
	tenant uuid.UUID
	env    []string // of the tool
	dir    string
	api    *client.Client

	address string // of the API
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir()}
	database := testenv.Postgres(t)
	b.database = database
	env := []string{"DATABASE_URL=" + database, "REDIS_URL=" + testenv.Redis(t), "SENDQUOTA_ADDR=127.0.0.1:0", "SENDQUOTA_SEAL_KEY=" + testenv.SealKey,
		"SENDQUOTA_CONFIG=" + b.file("sendquota.yaml", "tenant_channels: {max: 1000, types: [log]}\n")}
	cfg, err := config.Load(env)
	testenv.Check(t, err)
	cfg.HTTP.Drain = 0
	a, err := app.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	testenv.Check(t, err)
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	go func() { ended <- a.RunBoth(ctx, ready) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, a.Close()); err != nil {
			t.Error(err)
		}
	})
	b.st, err = store.Open(t.Context(), database, store.Config{MaxConns: 4, Sealer: testenv.Sealer()})
	testenv.Check(t, err)
	t.Cleanup(b.st.Close)
	b.tenant, _, err = b.st.CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	_, key := b.key()
	var addr string
	select {
	case addr = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	b.address = "http://" + addr
	b.env = append(env, "SENDQUOTA_API=http://"+addr, "SENDQUOTA_API_KEY="+key)
	b.api, err = client.New("http://"+addr, key, client.Config{})
	testenv.Check(t, err)
	return b
}

// key makes a key of the tenant.
func (b *bench) key() (id uuid.UUID, secret string) {
	b.Helper()
	k, secret, err := b.st.CreateKey(b.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: push.Scopes})
	testenv.Check(b, err)
	return k.ID, secret
}

// file writes a file, and returns its path.
func (b *bench) file(name, text string) string {
	b.Helper()
	path := filepath.Join(b.dir, name)
	testenv.Check(b, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// user makes a user of the tenant.
func (b *bench) user(email string) uuid.UUID {
	b.Helper()
	_, link := user.NewLink()
	u, err := b.st.CreateUser(b.Context(), user.New{Tenant: b.tenant, Email: email, Role: user.Viewer, Link: link})
	testenv.Check(b, err)
	return u.ID
}

// hook makes a webhook of the tenant, and returns its secret.
func (b *bench) hook() (secret string) {
	b.Helper()
	secret = uuid.NewString()
	_, err := b.st.CreateWebhook(b.Context(), webhook.Webhook{ID: uuid.New(), Tenant: b.tenant, URL: "https://example.com/hook", Events: webhook.Events}, secret, 20)
	testenv.Check(b, err)
	return secret
}

// run runs the tool, which must succeed, and returns its standard output.
func (b *bench) run(args ...string) string {
	b.Helper()
	var out strings.Builder
	if said, status := tool(b.T, b.env, &out, args...); status != 0 {
		b.Fatalf("sendquota %s: exit status %d\n%s%s", strings.Join(args, " "), status, out.String(), said)
	}
	return out.String()
}

// words replaces placeholders such as {key} in a command line, and splits it at blanks.
func (b *bench) words(line string) []string {
	b.Helper()
	words := strings.Fields(line)
	for i, word := range words {
		switch word {
		case "{key}":
			id, _ := b.key()
			words[i] = id.String()
		case "{user}":
			words[i] = b.user(fmt.Sprintf("%s@x", uuid.New())).String()
		case "{none}":
			words[i] = uuid.NewString()
		case "{push}":
			words[i] = b.push("ada")
		case "{fresh}":
			words[i] = uuid.NewString()
			_, _, err := b.st.CreateTenant(b.Context(), words[i])
			testenv.Check(b, err)
		case "{doomed}":
			words[i] = b.doomed()
		case "{folder}":
			words[i] = filepath.Join(b.dir, uuid.NewString())
		case "{email}":
			words[i] = uuid.NewString() + "@x"
		case "{tomorrow}":
			words[i] = tomorrow().UTC().Format(time.RFC3339)
		case "{draft}":
			words[i] = b.draft()
		case "{started}":
			words[i] = b.draft()
			_, err := b.api.Campaigns.Start(b.Context(), words[i])
			testenv.Check(b, err)
		case "{channel}":
			words[i] = b.file("channel.json", `{"type": "log"}`)
		case "{own}":
			words[i] = uuid.NewString()
			_, err := b.api.Channels.Put(b.Context(), words[i], client.ChannelSettings{"type": "log"})
			testenv.Check(b, err)
		case "{policy}":
			words[i] = b.file("policy.yaml", "rules: []\n")
		case "{csv}":
			words[i] = b.file("people.csv", "recipient\nada\n")
		}
	}
	return words
}

// push submits a push for tomorrow to a new recipient.
func (b *bench) push(recipient string) string {
	b.Helper()
	p, err := b.api.Pushes.Submit(b.Context(), "", client.NewPush{Recipient: recipient + "-" + uuid.NewString(), Message: client.Message{"title": "x"}, SendAt: tomorrow()})
	testenv.Check(b, err)
	return p.ID
}

// draft makes a campaign with one recipient, which is sent tomorrow.
func (b *bench) draft() string {
	b.Helper()
	c, err := b.api.Campaigns.Create(b.Context(), "", client.NewCampaign{Name: "x", Message: client.Message{"title": "x"}, SendAt: tomorrow()})
	testenv.Check(b, err)
	_, err = b.api.Campaigns.PutAudience(b.Context(), c.ID, strings.NewReader("recipient\n"+uuid.NewString()+"\n"), client.CSV)
	testenv.Check(b, err)
	return c.ID
}
