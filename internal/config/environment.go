package config

import (
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
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

func (c *Config) variables() []field {
	return []field{
		{databaseURL, optional, "Postgres, postgres://user:password@host:port/database, with @ / # ? % in the password percent-encoded; required but for `sendquota dev`", databaseURLOf(&c.DatabaseURL)},
		{redisURL, optional, "Redis, redis://… or rediss://…, or the nodes of a cluster: host:port,host:port; required by api and worker", hidden(&c.RedisURL, checkRedisURL)},
		{AddrVariable, "127.0.0.1:8080", "where the API listens, host:port", address(&c.Addr)},
		{ConfigVariable, optional, "path of the YAML file; without it, the defaults", anyText(&c.File)},
		{"SENDQUOTA_LOG_LEVEL", "info", "debug, info, warn or error", level(&c.LogLevel)},
		{MetricsAddrVariable, optional, "where the worker serves its metrics, host:port; without it, nowhere", address(&c.MetricsAddr)},
	}
}

func (c *Config) readEnvironment(env environment, needed []string) Errors {
	in := &source{env: env}
	for _, v := range c.variables() {
		p := place{in: in, key: v.name}
		if value := env.values[v.name]; value != "" {
			p.node = &ast.StringNode{Value: value}
		} else if slices.Contains(needed, v.name) {
			p.refuse("is required (%s)", v.meaning)
		}
		v.read(p)
	}
	return in.faults
}

// environment is the environment of the process. A variable that is set to
// nothing counts as not set.
type environment struct {
	values map[string]string
	named  map[string]bool // by a ${NAME} in the file
}

func newEnvironment(environ []string) environment {
	env := environment{values: map[string]string{}, named: map[string]bool{}}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		env.values[name] = value
	}
	return env
}

// strangers faults the variables that have our prefix, but are neither a
// setting, named by the file, nor made by Kubernetes. Their values are not
// shown: a DATABASE_URL that was given our prefix holds a password.
func (env environment) strangers(known []field) Errors {
	in := &source{}
	for name, value := range env.values {
		ours := strings.HasPrefix(name, ownPrefix) && !env.named[name] && !isServiceLink(name, value)
		if ours && !slices.ContainsFunc(known, func(f field) bool { return f.name == name }) {
			place{in: in, key: name}.refuse("is not a setting; %s", suggest(name, names(known)))
		}
	}
	slices.SortFunc(in.faults, func(a, b Error) int { return strings.Compare(a.Field, b.Field) })
	return in.faults
}

// Kubernetes gives every container variables for each Service of its namespace:
// those of sendquota and sendquota-api begin with our prefix. A plain number as
// SENDQUOTA_PORT is no such variable but a setting that does not exist.
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

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
