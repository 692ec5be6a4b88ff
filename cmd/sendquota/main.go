// Command sendquota is the operator's tool. Under the name api or worker it is that
// service: the image has one binary with three names.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/cli"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/programs"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

var commands struct {
	cli.Flags
	Config struct {
		Check checkConfig `cmd:"" help:"Check the settings of the environment and of a YAML file as the services would at their start, and say all that is wrong at once. Exit status: 0 nothing, 1 something."`
	} `cmd:"" help:"The settings of the services."`
	Migrate migrate `cmd:"" help:"Apply the migrations that the database lacks. Safe to run from several places at once. DATABASE_URL must lead to Postgres itself, not to a pooler."`
	Seal    struct {
		Rotate rotateSeal `cmd:"" help:"Seal again, with SENDQUOTA_SEAL_KEY, the secrets in Postgres that SENDQUOTA_SEAL_KEY_PREVIOUS has sealed. Exit status: 0 all are sealed with the key, 1 some are not."`
	} `cmd:"" help:"The key that seals secrets in Postgres."`
	Tenants struct {
		Create createTenant `cmd:"" help:"Make a tenant; succeeds if it exists."`
		List   listTenants  `cmd:"" help:"List the tenants and their caps."`
		Cap    capTenant    `cmd:"" help:"Set how much one tenant may have at a time."`
		Top    topTenants   `cmd:"" help:"List the busiest tenants: pushes that are due, and in this hour of UTC and the last one those accepted, refused, and ended; and campaigns that go on."`
		Rename renameTenant `cmd:"" help:"Give a tenant another name."`
		Export exportTenant `cmd:"" help:"Write everything of a tenant but secrets into files of NDJSON."`
		Delete deleteTenant `cmd:"" help:"Delete a tenant with everything of it."`
	} `cmd:"" help:"Tenants: the customers of the API."`
	Keys struct {
		Create createKey `cmd:"" help:"Make an API key and print it, this once, on standard output."`
		List   listKeys  `cmd:"" help:"List the keys, without the secrets."`
		Rotate rotateKey `cmd:"" help:"Make a key with the tenant and scopes of another one, and print it, this once; both live for a while."`
		Revoke revokeKey `cmd:"" help:"Have a key refused; succeeds if it is already."`
	} `cmd:"" help:"API keys."`
	Users struct {
		Create  createUser  `cmd:"" help:"Make a user of the console, and print a link to set a password, this once, on standard output."`
		List    listUsers   `cmd:"" help:"List the users, without links and passwords."`
		Link    linkUser    `cmd:"" help:"Print another link to set a password, this once, on standard output. The one before it ends."`
		Disable disableUser `cmd:"" help:"Sign a user out everywhere, and let the user not sign in any more; or, with --enable, again."`
	} `cmd:"" help:"Users: the people who sign in to the console. Links begin with console.public_url of SENDQUOTA_CONFIG."`
	Policy struct {
		Show  showPolicy  `cmd:"" help:"Print the policy of a tenant that is in force, in YAML, as apply reads it."`
		Check checkPolicy `cmd:"" help:"Say all that is wrong with a policy in a file. It asks no server. Exit status: 0 nothing, 1 something."`
		Apply applyPolicy `cmd:"" help:"Put the policy of a file in force for a tenant, or say what that would do."`
	} `cmd:"" help:"Policies of tenants: rules, categories and quiet hours, for those who keep them in files."`
	Status   showStatus   `cmd:"" help:"Count what waits, is due and is under way, by tenant."`
	Channels showChannels `cmd:"" help:"List the channels, as workers see them, with what is due and the attempts of the last minute."`
	Failures listFailures `cmd:"" help:"List the pushes that have failed or expired, by tenant, channel and reason. It looks at the latest 100,000 of each tenant."`
	Webhooks listWebhooks `cmd:"" help:"List the webhooks, without their secrets."`
	Push     struct {
		Get    getPush    `cmd:"" help:"Show a push of any tenant, with its attempts. It shows no message and no address."`
		List   listPushes `cmd:"" help:"List pushes: by tenant, then by send time."`
		Cancel cancelPush `cmd:"" help:"Cancel a push that waits; succeeds if it is canceled already."`
	} `cmd:"" help:"Pushes of all tenants."`
	Schedules struct {
		List listSchedules `cmd:"" help:"List the schedules with their next times (UTC), also those that have ended: by tenant, then by id. It shows no recipients and no messages."`
	} `cmd:"" help:"Schedules: pushes that are sent again and again."`
	Recipients struct {
		Import importRecipients `cmd:"" help:"Describe recipients by a file of CSV or NDJSON, through the API. Exit status: 0 every line is stored, 1 some were rejected, 2 the import could not be made."`
	} `cmd:"" help:"What is known of recipients."`
	Campaign struct {
		Run    runCampaign    `cmd:"" help:"Send one message to everybody in a file: upload it, start the campaign and follow it; or, with --simulate, say what would happen."`
		List   listCampaigns  `cmd:"" help:"List campaigns, the latest first."`
		Show   showCampaign   `cmd:"" help:"Show how far a campaign is, and what became of each recipient."`
		Start  startCampaign  `cmd:"" help:"Start a draft."`
		Pause  pauseCampaign  `cmd:"" help:"Hold a campaign. Nothing begins to be sent from two seconds after the answer."`
		Resume resumeCampaign `cmd:"" help:"Have a campaign go on that is paused."`
		Cancel cancelCampaign `cmd:"" help:"End a campaign, and give back the places of what was not sent."`
	} `cmd:"" help:"Campaigns: one message for everybody in a file, through the API. Exit status: 0 done, 1 some were not sent it, 2 usage, 3 refused."`
	Completion completion `cmd:"" help:"Print the lines with which bash, zsh or fish completes the words of this command."`
	Audit      audit      `cmd:"" help:"Prove the guarantees from Postgres alone. Exit status: 0 clean, 1 violations, 2 the audit could not be made."`
	devCommands
}

func main() {
	if service := programs.ByName(os.Args[0]); service != nil {
		service()
		return
	}
	cli.Main(&commands, "sendquota",
		"The operator's tool of sendquota. It needs DATABASE_URL, and for the audit, policies and users the SENDQUOTA_CONFIG of the services, and for seal rotate their keys; recipients import and campaign need an API key instead, and dev nothing.", durations)
}

// durations reads flags that are durations as the settings are read, also in days.
var durations = kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := duration.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: must be a duration, such as 90s, 24h or 30d", brief(text))
	}
	target.SetInt(int64(d))
	return nil
}))

// patience is how long a transaction may take: a person waits for it, maybe while the database is in trouble.
const patience = 20 * time.Second

// withStore runs work on the database of the environment.
func withStore(work func(ctx context.Context, cfg config.Config, st *store.Store) error) error {
	cfg, err := config.LoadTool(os.Environ())
	if err != nil {
		return err
	}
	ctx, stop := app.UntilSignal()
	defer stop()
	sealer, err := cfg.Sealer()
	if err != nil {
		return err
	}
	st, err := store.Open(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: 4, Timeout: patience, ExternalPasswords: cfg.Console.ExternalPasswords, Sealer: sealer})
	if err != nil {
		return err
	}
	defer st.Close()
	return work(push.WithActor(ctx, push.Actor{Type: push.ActorSystem, Name: operator()}), cfg, st)
}

// operator is the name in the audit log for what the tool changes: of the person, also behind sudo, and of the machine.
func operator() string {
	name := cmp.Or(os.Getenv("SUDO_USER"), os.Getenv("USER"))
	if me, err := user.Current(); name == "" && err == nil {
		name = me.Username
	}
	host, err := os.Hostname()
	if err == nil {
		name += "@" + host
	}
	return name
}
