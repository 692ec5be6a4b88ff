package config

import (
	"regexp"
	"strings"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Variables that messages of other packages name.
const (
	AddrVariable        = "SENDQUOTA_ADDR"
	APIVariable         = "SENDQUOTA_API"
	APIKeyVariable      = "SENDQUOTA_API_KEY"
	FileVariable        = "SENDQUOTA_CONFIG"
	MetricsAddrVariable = "SENDQUOTA_METRICS_ADDR"
)

// Names that are used in more than one place.
const (
	databaseURL = "DATABASE_URL"
	redisURL    = "REDIS_URL"
	ownPrefix   = "SENDQUOTA_" // every variable with this prefix must be known
)

func (c *Config) variables(t *strictyaml.Table) {
	t.Secret(databaseURL, optional, "Postgres, postgres://user:password@host:port/database, with @ / # ? % in the password percent-encoded; required; `sendquota dev` ignores it", &c.DatabaseURL, checkDatabaseURL)
	t.Secret(redisURL, optional, "Redis, redis://… or rediss://…; the nodes of a cluster, host:port,host:port, or its one endpoint, redis-cluster://host:port; or sentinels, redis-sentinel://host:port,host:port?master=NAME; required by api and worker; `sendquota dev` ignores it", &c.RedisURL, checkRedisURL)
	t.String(AddrVariable, "127.0.0.1:8080", "the listen address of the API, host:port", &c.Addr, checkAddress)
	t.String(APIVariable, optional, "the URL of the API for `sendquota campaign` and `sendquota recipients`, such as https://api.example.com; without it, http://127.0.0.1:8080", &c.API, checkURL)
	t.Secret(APIKeyVariable, optional, "the API key of `sendquota campaign` and `sendquota recipients`", &c.APIKey, func(string) string { return "" })
	t.String(FileVariable, optional, "path of the YAML file; without it, the defaults; `sendquota dev` ignores it, and has `--config`", &c.File, nil)
	t.Level("SENDQUOTA_LOG_LEVEL", "info", "debug, info, warn or error", &c.LogLevel)
	t.String(MetricsAddrVariable, optional, "the address of the worker's metrics and profiles, host:port, for operators only; without it, they are not served", &c.MetricsAddr, checkAddress)
	t.Secret(seal.KeyVariable, optional, "the key that seals secrets of webhooks and tenants' channels in Postgres, 32 bytes in base64, as from `openssl rand -base64 32`: the same for all programs; without it neither can be created; `sendquota dev` makes one; see [operations.md](operations.md#the-key-that-seals-secrets)", &c.SealKey, checkSealKey)
	t.Secret(seal.PreviousVariable, optional, "the previous key, during a change of keys: it opens secrets, and seals none", &c.PreviousSealKey, checkSealKey)
}

// Kubernetes gives every container variables for each Service of its namespace. The variables of Services such as sendquota and
// sendquota-api have our prefix. A plain number in SENDQUOTA_PORT is not from Kubernetes, but an unknown setting.
var (
	serviceLink    = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)$`)
	serviceLinkURL = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceLinkURL.MatchString(value)
}
