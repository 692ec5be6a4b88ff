package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// RedisServers are the servers of a [Config.RedisURL]: one server, the nodes of a cluster, or sentinels.
type RedisServers struct {
	Addrs              []string // host:port of the server, of some nodes, or of the sentinels
	Username, Password string   // for Redis itself, not for sentinels
	Database           int      // 0 in a cluster
	TLS                bool     // also to sentinels
	SkipVerify         bool     // accepts any certificate
	Cluster            bool     // also with one address: that node lists the others
	Master             string   // the sentinels' name for the master; empty: Addrs are no sentinels

	SentinelUsername, SentinelPassword string
}

// redisScheme has the kind of the addresses of a scheme.
type redisScheme struct {
	tls, cluster, sentinel bool
	port                   string // the default
}

var redisSchemes = map[string]redisScheme{
	"redis":           {port: "6379"},
	"rediss":          {port: "6379", tls: true},
	"redis-cluster":   {port: "6379", cluster: true},
	"rediss-cluster":  {port: "6379", cluster: true, tls: true},
	"redis-sentinel":  {port: "26379", sentinel: true},
	"rediss-sentinel": {port: "26379", sentinel: true, tls: true},
}

const (
	inRedisPassword = "in a password write @ as %40, / as %2F, # as %23, ? as %3F, % as %25 and a comma as %2C"
	inRedisOption   = inRedisPassword + ", and in an option & as %26 and ; as %3B"
	notRedisURL     = "must be redis://[user:password@]host:port[/number], the same with rediss://, several cluster nodes: host:port,host:port, " +
		"redis-cluster://[user:password@]host:port, or redis-sentinel://[user:password@]host:port,host:port[/number]?master=NAME; " + inRedisPassword
	notRedisNodes = "must be host:port for every cluster node, all with redis://, all with rediss:// or all without; a cluster has database 0 only; " + inRedisPassword
)

// ParseRedisURL parses a [Config.RedisURL]. The error quotes nothing of the URL.
func ParseRedisURL(s Secret) (RedisServers, error) {
	servers, wrong := parseRedisURL(string(s))
	if wrong != "" {
		return RedisServers{}, fmt.Errorf("%s: %s", redisURL, wrong)
	}
	return servers, nil
}

// checkRedisURL returns the error of a [Config.RedisURL], or "".
func checkRedisURL(s string) string {
	_, wrong := parseRedisURL(s)
	return wrong
}

func parseRedisURL(s string) (servers RedisServers, wrong string) {
	name, rest, _ := strings.Cut(s, "://")
	scheme := redisSchemes[name]
	switch {
	case scheme.cluster || scheme.sentinel:
		return scheme.parse(rest)
	case strings.Contains(s, ","):
		return parseRedisNodes(s)
	}
	u, ok := parseOneRedis(s)
	if !ok {
		return servers, notRedisURL
	}
	return u, ""
}

// parseRedisNodes parses the nodes of a cluster, each with a scheme or without. All nodes have the same credentials and TLS,
// so one node with credentials is enough.
func parseRedisNodes(s string) (all RedisServers, wrong string) {
	all.Cluster = true
	for i, node := range strings.Split(s, ",") {
		node = strings.TrimSpace(node)
		if !strings.Contains(node, "://") {
			if !isHostPort(node) {
				return all, notRedisNodes
			}
			node = "redis://" + node
		}
		one, ok := parseOneRedis(node)
		if !ok || one.Database != 0 || i > 0 && one.TLS != all.TLS {
			return all, notRedisNodes
		}
		all.Addrs, all.TLS, all.SkipVerify = append(all.Addrs, one.Addrs...), one.TLS, all.SkipVerify || one.SkipVerify
		if all.Username == "" && all.Password == "" {
			all.Username, all.Password = one.Username, one.Password
		}
	}
	return all, ""
}

// parseOneRedis parses the URL of one server. Its only option is skip_verify, for TLS within a private network.
func parseOneRedis(s string) (one RedisServers, ok bool) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Fragment != "" {
		return one, false
	}
	scheme := redisSchemes[u.Scheme]
	if scheme.port == "" || scheme.cluster || scheme.sentinel || u.RawQuery != "" && (u.RawQuery != "skip_verify=true" || !scheme.tls) {
		return one, false
	}
	one = RedisServers{Addrs: []string{scheme.addr(u.Host)}, TLS: scheme.tls, SkipVerify: u.RawQuery != "", Username: u.User.Username()}
	one.Password, _ = u.User.Password()
	one.Database, ok = redisDatabase(u.Path)
	return one, ok && isHostPort(one.Addrs[0])
}

// parse parses the part after the scheme of several addresses: [user:password@]host[:port][,host[:port]]…[/number][?options].
func (scheme redisScheme) parse(rest string) (servers RedisServers, wrong string) {
	servers = RedisServers{TLS: scheme.tls, Cluster: scheme.cluster}
	hosts, target := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		hosts, target = rest[:i], rest[i:]
	}
	userinfo, hosts, found := strings.Cut(hosts, "@")
	if !found {
		userinfo, hosts = "", userinfo
	}
	u, err := url.Parse("redis://" + userinfo + "@host" + target) // several hosts are not a URL
	if err != nil || u.Fragment != "" || strings.Contains(target, "#") || strings.Contains(hosts, "@") {
		return servers, "cannot be read; " + inRedisPassword
	}
	for _, host := range strings.Split(hosts, ",") {
		addr := scheme.addr(strings.TrimSpace(host))
		if !isHostPort(addr) {
			return servers, "must have host or host:port for every node or sentinel, with commas; " + inRedisPassword
		}
		servers.Addrs = append(servers.Addrs, addr)
	}
	servers.Username = u.User.Username()
	servers.Password, _ = u.User.Password()
	var ok bool
	if servers.Database, ok = redisDatabase(u.Path); !ok {
		return servers, "must have nothing but the number of a database behind the /; " + inRedisPassword
	}
	if scheme.cluster && servers.Database != 0 {
		return servers, "must have no database but 0, since a cluster has no other"
	}
	return servers, scheme.options(u.RawQuery, &servers)
}

// options parses the parameters.
func (scheme redisScheme) options(query string, to *RedisServers) (wrong string) {
	known := []string{}
	if scheme.tls {
		known = append(known, "skip_verify")
	}
	if scheme.sentinel {
		known = append(known, "master", "sentinel_username", "sentinel_password")
	}
	values, err := url.ParseQuery(strings.ReplaceAll(query, "+", "%2B")) // a + is no space: passwords contain it
	if err != nil {
		return "has options that cannot be read; " + inRedisOption
	}
	for name, v := range values {
		switch {
		case !slices.Contains(known, name):
			return unknownRedisOption(known)
		case len(v) > 1 || v[0] == "":
			return "has the option " + name + " without a value, or twice"
		}
	}
	if v := values.Get("skip_verify"); v != "" && v != "true" {
		return "has the option skip_verify with another value than true"
	}
	to.SkipVerify, to.Master = values.Has("skip_verify"), values.Get("master")
	to.SentinelUsername, to.SentinelPassword = values.Get("sentinel_username"), values.Get("sentinel_password")
	switch {
	case scheme.sentinel && to.Master == "":
		return "must have ?master=NAME, the sentinels' name for the master"
	case to.SentinelUsername != "" && to.SentinelPassword == "":
		return "has a sentinel_username without a sentinel_password"
	}
	return ""
}

func unknownRedisOption(known []string) string {
	if len(known) == 0 {
		return "must have no options; " + inRedisPassword
	}
	return "has an option that is not one of " + strings.Join(known, ", ") + "; " + inRedisOption
}

// addr adds the default port if there is none.
func (scheme redisScheme) addr(host string) string {
	host = strings.TrimSuffix(host, ":")
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), scheme.port)
}

func isHostPort(s string) bool {
	host, _, _ := net.SplitHostPort(s)
	_, err := netip.ParseAddr(host)
	return isAddress(s) && host != "" && (err == nil || !strings.Contains(host, ":"))
}

func redisDatabase(path string) (number int, ok bool) {
	path = strings.Trim(path, "/")
	if path == "" {
		return 0, true
	}
	number, err := strconv.Atoi(path)
	return number, err == nil && number >= 0
}
