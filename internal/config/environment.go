package config

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Names of variables that messages of other packages name.
const (
	AddrVariable        = "SENDQUOTA_ADDR"
	ConfigVariable      = "SENDQUOTA_CONFIG"
	MetricsAddrVariable = "SENDQUOTA_METRICS_ADDR"
)

// Names that are used in more than one place.
const (
	databaseURL = "DATABASE_URL"
	redisURL    = "REDIS_URL"
	ownPrefix   = "SENDQUOTA_" // every variable that begins so must be known
)

func (c *Config) variables(t *strictyaml.Table) {
	t.Secret(databaseURL, optional, "Postgres, postgres://user:password@host:port/database, with @ / # ? % in the password percent-encoded; required but for `sendquota dev`", &c.DatabaseURL, checkDatabaseURL)
	t.Secret(redisURL, optional, "Redis, redis://… or rediss://…, or the nodes of a cluster: host:port,host:port; required by api and worker", &c.RedisURL, checkRedisURL)
	t.String(AddrVariable, "127.0.0.1:8080", "where the API listens, host:port", &c.Addr, checkAddress)
	t.String(ConfigVariable, optional, "path of the YAML file; without it, the defaults", &c.File, nil)
	t.Level("SENDQUOTA_LOG_LEVEL", "info", "debug, info, warn or error", &c.LogLevel)
	t.String(MetricsAddrVariable, optional, "where the worker serves its metrics, host:port; without it, nowhere", &c.MetricsAddr, checkAddress)
}

// Kubernetes gives every container variables for each Service of its namespace: those of sendquota and sendquota-api begin
// with our prefix. A plain number as SENDQUOTA_PORT is no such variable but a setting that does not exist.
var (
	serviceLink    = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_PROTO|_PORT|_ADDR)?)$`)
	serviceLinkURL = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || strings.HasSuffix(name, "_PORT") && serviceLinkURL.MatchString(value)
}

func checkRedisURL(s string) string {
	nodes := strings.Split(s, ",")
	if len(nodes) == 1 {
		if isRedisURL(s, "redis", math.MaxInt) || isRedisURL(s, "rediss", math.MaxInt) {
			return ""
		}
		return "must be redis://[user:password@]host:port[/number], the same with rediss://, or several cluster nodes: host:port,host:port; " + inRedisPassword
	}
	for _, scheme := range []string{"redis", "rediss"} {
		if !slices.ContainsFunc(nodes, func(node string) bool { return !isRedisNode(node, scheme) }) {
			return ""
		}
	}
	return "must be host:port for every cluster node, all with redis://, all with rediss:// or all without; a cluster has database 0 only; " + inRedisPassword
}

const inRedisPassword = "in a password write @ as %40, / as %2F, # as %23, ? as %3F, % as %25 and a comma as %2C"

func isRedisNode(node, scheme string) bool {
	if strings.Contains(node, "://") {
		return isRedisURL(node, scheme, 0)
	}
	return scheme == "redis" && isAddress(node) && !strings.HasPrefix(node, ":")
}

// isRedisURL knows of one option, which TLS within a private network may need.
func isRedisURL(s, scheme string, lastDB int) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != scheme || u.Hostname() == "" || u.Fragment != "" || u.RawQuery != "" && u.RawQuery != "skip_verify=true" {
		return false
	}
	path := strings.Trim(u.Path, "/")
	db, err := strconv.Atoi(path)
	return path == "" || err == nil && 0 <= db && db <= lastDB
}
