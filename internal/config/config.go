package config

import "log/slog"

// Config is every setting, checked and with the defaults filled in.
//
// It is safe to print and to log: what may hold a secret is a Secret.
type Config struct {
	// From the environment.
	DatabaseURL Secret     // begins with postgres:// or postgresql://; may be empty in dev
	RedisURL    Secret     // redis://, rediss://, or cluster nodes with commas; may be empty in dev and tools
	Addr        string     // where the API listens, host:port
	MetricsAddr string     // where the worker serves its metrics, host:port; empty: nowhere
	LogLevel    slog.Level // what is less important is not logged
	File        string     // path of the YAML file; empty: none, all defaults

	// From the file.
	Policy     Policy
	Channels   []Channel // in the order of the file, at least one; the first is the default
	APILimits  APILimits
	TenantCaps TenantCaps
	HTTP       HTTP
	Database   Database
	Redis      Redis
	Delivery   Delivery
	Webhooks   Webhooks
}

// Load reads the settings of the two services, api and worker, which need both
// DATABASE_URL and REDIS_URL. It takes the environment in the form of
// os.Environ. The error is of type Errors and holds every fault found; what
// could be read is returned beside it, to find more.
func Load(environ []string) (Config, error) {
	return load(environ, databaseURL, redisURL)
}

// LoadTool is Load for the operator's tools, which need Postgres only.
func LoadTool(environ []string) (Config, error) {
	return load(environ, databaseURL)
}

// LoadDev is Load for development, where an absent DATABASE_URL or REDIS_URL
// means that a server of its own is found or started.
func LoadDev(environ []string) (Config, error) {
	return load(environ)
}

func load(environ []string, needed ...string) (Config, error) {
	var c Config
	env := newEnvironment(environ)
	faults := c.readEnvironment(env, needed)
	faults = append(faults, c.readFile(c.File, env)...)
	faults = append(faults, env.strangers(c.variables())...)
	if len(faults) > 0 {
		return c, faults
	}
	return c, nil
}

func (c *Config) fields() []field {
	return []field{
		{"policy", "{}", "the default policy of every tenant", object(&c.Policy)},
		{"channels", "{log: {type: log}}", "the ways out by name (1 to 64 of a-z, 0-9, - and _); the first is the default", channels(&c.Channels)},
		{"api_limits", "{}", "speed limits of API callers", object(&c.APILimits)},
		{"tenant_caps", "{}", "what each tenant may have at a time", object(&c.TenantCaps)},
		{"http", "{}", "how the programs answer", object(&c.HTTP)},
		{"database", "{}", "connections to Postgres", object(&c.Database)},
		{"redis", "{}", "connections to Redis", object(&c.Redis)},
		{"delivery", "{}", "how workers deliver", object(&c.Delivery)},
		{"webhooks", "{}", "how tenants are told what becomes of their pushes", object(&c.Webhooks)},
	}
}

// check holds an attempt to half a lease, so that its outcome can be recorded
// before the lease ends. A timeout that nobody wrote is shortened to fit.
func (c *Config) check(p place) {
	half := c.Delivery.Lease / 2
	for i := range c.Channels {
		channel := &c.Channels[i]
		timeout := p.child("channels").child(channel.Name).child("timeout")
		switch {
		case half == 0 || channel.Timeout <= half: // half is 0 when the lease is at fault itself
		case timeout.given():
			timeout.fault("must be at most half of delivery.lease, which is %s", short(c.Delivery.Lease))
		default:
			channel.Timeout = half
		}
	}
}
