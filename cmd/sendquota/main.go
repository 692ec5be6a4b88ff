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
	kongcompletion "github.com/jotaen/kong-completion"

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
		Check checkConfig `cmd:"" help:"Check the settings of the environment and of a YAML file as the services do at their start, and report all errors at once. Exit status: 0 no error, 1 errors."`
	} `cmd:"" help:"The settings of the services."`
	Migrate migrate `cmd:"" help:"Apply the migrations that the database lacks. Safe to run from several places at once. DATABASE_URL must lead to Postgres itself, not to a pooler."`
	Seal    struct {
		Rotate rotateSeal `cmd:"" help:"Seal again, with SENDQUOTA_SEAL_KEY, the secrets in Postgres that SENDQUOTA_SEAL_KEY_PREVIOUS has sealed. Exit status: 0 all are sealed with the key, 1 some are not."`
	} `cmd:"" help:"The key that seals secrets in Postgres."`
	Tenants struct {
		Create createTenant `cmd:"" help:"Create a tenant; succeeds if it exists."`
		List   listTenants  `cmd:"" help:"List the tenants and their caps."`
		Cap    capTenant    `cmd:"" help:"Set the caps of a tenant."`
		Top    topTenants   `cmd:"" help:"List the busiest tenants: pushes that are due; pushes accepted, refused and ended in this hour of UTC and the last one; and campaigns under way."`
		Rename renameTenant `cmd:"" help:"Give a tenant another name."`
		Export exportTenant `cmd:"" help:"Write all data of a tenant except secrets into files of NDJSON."`
		Delete deleteTenant `cmd:"" help:"Delete a tenant and all of its data."`
	} `cmd:"" help:"Tenants: the customers of the API."`
	Keys struct {
		Create createKey `cmd:"" help:"Create an API key and print it once, on standard output."`
		List   listKeys  `cmd:"" help:"List the keys, without the secrets."`
		Rotate rotateKey `cmd:"" help:"Create a key with the tenant and scopes of another one, and print it once. Both keys work for a while."`
		Revoke revokeKey `cmd:"" help:"Revoke a key; succeeds if it is revoked already."`
	} `cmd:"" help:"API keys."`
	Users struct {
		Create  createUser  `cmd:"" help:"Create a user of the console, and print a link to set a password once, on standard output."`
		List    listUsers   `cmd:"" help:"List the users, without links and passwords."`
		Link    linkUser    `cmd:"" help:"Print a new link to set a password once, on standard output. The previous link ends."`
		Disable disableUser `cmd:"" help:"Sign a user out everywhere and prevent further sign-ins; with --enable, permit them again."`
	} `cmd:"" help:"Users: the people who sign in to the console. Links begin with console.public_url of SENDQUOTA_CONFIG."`
	Policy struct {
		Show  showPolicy  `cmd:"" help:"Print the policy in force for a tenant, in YAML, as apply reads it."`
		Check checkPolicy `cmd:"" help:"Report all errors of a policy in a file. It connects to no server. Exit status: 0 no error, 1 errors."`
		Apply applyPolicy `cmd:"" help:"Put the policy of a file in force for a tenant, or forecast its effect."`
	} `cmd:"" help:"Policies of tenants in files: rules, categories and quiet hours."`
	Pause    pauseSending  `cmd:"" help:"Stop sending for a tenant, or for all: everything, a channel, a category or a campaign. No attempt begins from two seconds on. Succeeds if it is paused already."`
	Pauses   listPauses    `cmd:"" help:"List what is paused: for a tenant, or by the operator for all."`
	Resume   resumeSending `cmd:"" help:"End such a pause, by its scope or its id. What became due meanwhile is sent, as the quota allows. Succeeds if nothing is paused."`
	Status   showStatus    `cmd:"" help:"Count the pushes that wait, are due and are under way, by tenant."`
	Channels struct {
		List   showChannels  `cmd:"" default:"withargs" help:"List the channels, as workers see them, with due pushes and the attempts of the last minute; with --tenant, of one tenant, with its own."`
		Set    setChannel    `cmd:"" help:"Create a channel of a tenant's own, or replace it. The tenant's pushes then never go through the operator's channel of that name."`
		Test   testChannel   `cmd:"" help:"Send one message through a channel of a tenant's own, outside of any quota. Exit status: 0 delivered, 1 not."`
		Delete deleteChannel `cmd:"" help:"Delete a channel of a tenant's own. Fails while pushes are booked for it, unless --cancel-pushes cancels them."`
	} `cmd:"" help:"Channels: the operator's, and those that tenants make."`
	Failures listFailures `cmd:"" help:"List the pushes that have failed or expired, by tenant, channel and reason, from the latest 100,000 of each tenant."`
	Webhooks listWebhooks `cmd:"" help:"List the webhooks, without their secrets."`
	Push     struct {
		Get    getPush    `cmd:"" help:"Show a push of any tenant, with its attempts. It shows no message and no address."`
		List   listPushes `cmd:"" help:"List pushes: by tenant, then by send time."`
		Cancel cancelPush `cmd:"" help:"Cancel a push that waits; succeeds if it is canceled already."`
	} `cmd:"" help:"Pushes of all tenants."`
	Schedules struct {
		List listSchedules `cmd:"" help:"List the schedules, also ended ones, with their next times (UTC): by tenant, then by id. It shows no recipients and no messages."`
	} `cmd:"" help:"Schedules: pushes that are sent again and again."`
	Recipients struct {
		Import importRecipients `cmd:"" help:"Import recipients from a file of CSV or NDJSON, through the API. Exit status: 0 every line is stored, 1 some were rejected, 2 the import failed."`
	} `cmd:"" help:"Recipients: zones, addresses, opt-outs, limits and attributes."`
	Campaign struct {
		Run    runCampaign    `cmd:"" help:"Send one message to all recipients in a file: upload it, start the campaign and follow it; or, with --simulate, show what would happen."`
		List   listCampaigns  `cmd:"" help:"List campaigns, the latest first."`
		Show   showCampaign   `cmd:"" help:"Show the progress of a campaign, and the result of each recipient."`
		Start  startCampaign  `cmd:"" help:"Start a draft."`
		Pause  pauseCampaign  `cmd:"" help:"Pause a campaign. No attempt begins from two seconds after the answer."`
		Resume resumeCampaign `cmd:"" help:"Continue a paused campaign."`
		Cancel cancelCampaign `cmd:"" help:"End a campaign, and release the places of unsent pushes."`
	} `cmd:"" help:"Campaigns: one message for all recipients in a file, through the API. Exit status: 0 done, 1 some were not sent it, 2 usage, 3 refused."`
	Completion completion   `cmd:"" help:"Print the completion script of this command for bash, zsh or fish."`
	Audit      auditCommand `cmd:"" help:"Prove the guarantees from Postgres alone. Exit status: 0 clean, 1 violations, 2 the audit failed."`
	devCommands
}

func main() {
	if service := programs.ByName(os.Args[0]); service != nil {
		service()
		return
	}
	cli.Main(&commands, "sendquota",
		"The operator's tool of sendquota. Commands need DATABASE_URL; audit, policy and users also the SENDQUOTA_CONFIG of the services, and seal rotate their keys. recipients import and campaign need an API key instead; dev needs nothing.", durations)
}

// durations parses duration flags like the settings, also in days.
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

// storeTimeout bounds a transaction. It is longer than in the services, because a person waits, possibly while the database is in trouble.
const storeTimeout = 20 * time.Second

// withStore opens the database that the environment names, and runs work on it.
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
	st, err := store.Open(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: 4, Timeout: storeTimeout, ExternalPasswords: cfg.Console.ExternalPasswords, Sealer: sealer})
	if err != nil {
		return err
	}
	defer st.Close()
	return work(push.WithActor(ctx, push.Actor{Type: push.ActorSystem, Name: operator()}), cfg, st)
}

// operator returns the actor for the audit log, as user@host. Behind sudo it is the user who ran sudo.
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

// completion prints the script that completes this command in a shell.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help.
func (completion) Help() string {
	return "In ~/.bashrc: source <(sendquota completion bash). In ~/.zshrc: source <(sendquota completion zsh). In ~/.config/fish/config.fish: sendquota completion fish | source"
}

// Run prints the script.
func (c completion) Run(ctx *kong.Context) error {
	return (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(ctx)
}
