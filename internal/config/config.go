package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Short names for the lists of settings.
const (
	required = strictyaml.Required
	optional = strictyaml.Optional
	forever  = strictyaml.Forever
)

// Secret is a string that is never printed, logged or encoded. This alias lets users of a Config do without another
// package.
type Secret = strictyaml.Secret

// Errors is the list of all errors in the settings. It is an alias for the same reason.
type Errors = strictyaml.Errors

// Config has every setting, checked and with the defaults filled in.
//
// It is safe to print and to log: every field that may hold a secret is a Secret.
type Config struct {
	// From the environment.
	DatabaseURL Secret     // begins with postgres:// or postgresql://; may be empty in dev
	RedisURL    Secret     // as [ParseRedisURL] reads it; may be empty in dev and tools
	Addr        string     // the listen address of the API, host:port
	API         string     // the URL of the API for commands of the tool; empty: their default
	APIKey      Secret     // for these commands; may be empty
	MetricsAddr string     // the address of the worker's metrics, host:port; empty: none
	LogLevel    slog.Level // the lowest level that is logged
	File        string     // path of the YAML file; empty: none, all defaults

	SealKey, PreviousSealKey Secret // in base64; may be empty; see [Config.Sealer]

	// From the file.
	Policy     Policy    // for every tenant without its own
	Channels   []Channel // in the order of the file, at least one; the first is the default
	APILimits  APILimits
	APIKeys    APIKeys
	TenantCaps TenantCaps
	HTTP       HTTP
	Console    Console
	Database   Database
	Redis      Redis
	Delivery   Delivery
	Webhooks   Webhooks
	Schedules  Schedules
	Campaigns  Campaigns
	Retention  Retention

	TenantChannels TenantChannels
}

// Load reads the settings of the two services, api and worker, which need both DATABASE_URL and REDIS_URL. It takes the
// environment in the form of os.Environ. The error is of type Errors and lists all errors: first of the environment, then
// of the file, by line. The Config beside it has the settings without errors, so that the caller can find further errors.
func Load(environ []string) (Config, error) {
	return load(environ, databaseURL, redisURL)
}

// LoadTool is Load for the operator's tools, which need Postgres only.
func LoadTool(environ []string) (Config, error) {
	return load(environ, databaseURL)
}

// LoadDev is Load for development, where an absent DATABASE_URL or REDIS_URL means that the caller finds or starts a server.
func LoadDev(environ []string) (Config, error) {
	return load(environ)
}

func load(environ []string, needed ...string) (Config, error) {
	var c Config
	env := strictyaml.NewEnvironment(environ)
	wrong := env.Read(c.variables, needed...)
	if c.PreviousSealKey != "" && c.SealKey == "" && !wrong.Concern(seal.KeyVariable) {
		wrong = append(wrong, strictyaml.Error{FieldError: invalid.FieldError{Field: seal.KeyVariable, Message: "is required beside " + seal.PreviousVariable}})
	}
	c.DatabaseURL = plainDatabaseURL(c.DatabaseURL)
	wrong = append(wrong, c.readFile(env)...)
	wrong = append(wrong, env.Unknown(ownPrefix, c.variables, isServiceLink)...)
	if len(wrong) > 0 {
		return c, wrong
	}
	return c, nil
}

func (c *Config) readFile(env strictyaml.Environment) Errors {
	if c.File == "" {
		return env.ReadYAML("", nil, c.settings)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		if broken := (*fs.PathError)(nil); errors.As(err, &broken) {
			err = broken.Err
		}
		return Errors{{FieldError: invalid.FieldError{Field: FileVariable, Value: fmt.Sprintf("%q", c.File), Message: fmt.Sprintf("cannot be read: %v", err)}}}
	}
	return env.ReadYAML(c.File, text, c.settings)
}

func (c *Config) settings(t *strictyaml.Table) {
	t.Section("policy", "{}", "the policy of every tenant without one of its own: see [policies.md](policies.md)", func(t *strictyaml.Table) { c.Policy.settings(t, threeRules) })
	strictyaml.Map(t, "channels", "{log: {type: log}}", "the channels by name (1 to 64 of a-z, 0-9, - and _); the first is the default", &c.Channels, (*Channel).nameOf, (*Channel).settings)
	t.Section("tenant_channels", "{}", "the channels that tenants make: see [channels.md](channels.md#channels-of-a-tenant)", c.TenantChannels.settings)
	t.Section("api_limits", "{}", "speed limits of API callers", c.APILimits.settings)
	t.Section("api_keys", "{}", "the keys that tenants make over REST", c.APIKeys.settings)
	t.Section("tenant_caps", "{}", "what each tenant may have at a time", c.TenantCaps.settings)
	t.Section("http", "{}", "how the programs answer", c.HTTP.settings)
	t.Section("console", "{}", "pages for people: see [console.md](console.md)", c.Console.settings)
	t.Section("database", "{}", "connections to Postgres", c.Database.settings)
	t.Section("redis", "{}", "connections to Redis", c.Redis.settings)
	t.Section("delivery", "{}", "how workers deliver", c.Delivery.settings)
	t.Section("webhooks", "{}", "how tenants' endpoints get events about pushes", c.Webhooks.settings)
	t.Section("schedules", "{}", "pushes that are sent again and again", c.Schedules.settings)
	t.Section("campaigns", "{}", "messages for all recipients of an audience", c.Campaigns.settings)
	t.Section("retention", "{}", "how long records are kept", c.Retention.settings)
	t.Check(c.checkChannels)
	t.Check(c.checkPolicy)
	t.Check(c.checkRetention)
}

// checkChannels limits an attempt to half a lease, so that its outcome can be recorded before the lease ends. It shortens a
// default timeout to fit.
func (c *Config) checkChannels(p strictyaml.Node) {
	p = p.Child("channels")
	if c.Channels != nil && len(c.Channels) == 0 {
		p.BadValue("must have at least one channel; leave the key out for the default")
	}
	half := c.Delivery.Lease / 2
	for i := range c.Channels {
		channel := &c.Channels[i]
		at := p.Child(channel.Name)
		if !nameShape.MatchString(channel.Name) {
			at.BadKey("the name of a channel must be %s", nameForm)
		}
		if half > 0 { // otherwise the lease itself has an error
			channel.limitTimeout(at, half)
		}
	}
}

// limitTimeout rejects a timeout that is longer than half of the lease, and shortens a default one.
func (c *Channel) limitTimeout(p strictyaml.Node, half time.Duration) {
	timeout := p.Child("timeout")
	switch {
	case c.Timeout <= half:
	case timeout.Given():
		timeout.BadValue("must be at most half of delivery.lease, which is %s", duration.Words(2*half))
	default:
		c.Timeout = half
	}
}

// checkPolicy reports errors of the policy as a whole, such as unknown channels.
func (c *Config) checkPolicy(p strictyaml.Node) {
	c.Policy.compile(p.Child("policy"), c.ChannelNames())
}

// Sealer returns a sealer of secrets in Postgres with the keys of the environment. It returns nil if there is no key.
func (c *Config) Sealer() (*seal.Sealer, error) {
	return seal.New(string(c.SealKey), string(c.PreviousSealKey))
}

// ChannelNames lists the names of the channels.
func (c *Config) ChannelNames() []string {
	names := make([]string, len(c.Channels))
	for i := range c.Channels {
		names[i] = c.Channels[i].Name
	}
	return names
}
