package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestParseRedisURL: every form, with what it names.
func TestParseRedisURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[Secret]RedisServers{
		"redis://h":                             {Addrs: []string{"h:6379"}},
		"redis://[::1]:7/2":                     {Addrs: []string{"[::1]:7"}, Database: 2},
		"rediss://u:p%40@h:1/?skip_verify=true": {Addrs: []string{"h:1"}, Username: "u", Password: "p@", TLS: true, SkipVerify: true},
		"a:1, b:2":                              {Addrs: []string{"a:1", "b:2"}, Cluster: true},
		"a:1,redis://:p@b:2":                    {Addrs: []string{"a:1", "b:2"}, Password: "p", Cluster: true},
		"rediss://u:p@a:1,rediss://v:q@b:2/0":   {Addrs: []string{"a:1", "b:2"}, Username: "u", Password: "p", TLS: true, Cluster: true},

		"redis-cluster://clustercfg.example.com":         {Addrs: []string{"clustercfg.example.com:6379"}, Cluster: true},
		"rediss-cluster://u:p,@a:1,b/0?skip_verify=true": {Addrs: []string{"a:1", "b:6379"}, Username: "u", Password: "p,", TLS: true, SkipVerify: true, Cluster: true},

		"redis-sentinel://a:1,b,[::1]?master=primary": {Addrs: []string{"a:1", "b:26379", "[::1]:26379"}, Master: "primary"},
		"rediss-sentinel://u:p@a/3?master=m&sentinel_username=v&sentinel_password=q%261+2": {
			Addrs: []string{"a:26379"}, Username: "u", Password: "p", Database: 3, TLS: true, Master: "m", SentinelUsername: "v", SentinelPassword: "q&1+2"},
	} {
		got, err := ParseRedisURL(url)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", string(url), got, err, want)
		}
		if _, err := LoadDev([]string{"REDIS_URL=" + string(url)}); err != nil {
			t.Errorf("%s: %v", string(url), err)
		}
	}
}

// TestParseRedisURL_Wrong: the error is the one of the settings, and shows no part that may be a password.
func TestParseRedisURL_Wrong(t *testing.T) {
	t.Parallel()
	for url, want := range map[Secret]string{
		"redis://h:70000":                                          "must be redis://[",
		"redis://h?skip_verify=true":                               "must be redis://[",
		"redis-replica://h":                                        "redis-sentinel://[",
		"redis-cluster://":                                         "must have host or host:port for every node or sentinel",
		"redis-cluster://a,":                                       "must have host or host:port for every node or sentinel",
		"redis-cluster://a:0x1":                                    "must have host or host:port for every node or sentinel",
		"redis-cluster://:top@secret@a":                            "cannot be read; in a password write @ as %40",
		"redis-cluster://:top#secret@a":                            "cannot be read; in a password write @ as %40",
		"redis-cluster://:top%zzsecret@a":                          "cannot be read; in a password write @ as %40",
		"redis-cluster://:top/secret@a":                            "for every node or sentinel, with commas; in a password",
		"redis-cluster://a/1":                                      "must have no database but 0",
		"redis-cluster://a/secret":                                 "must have nothing but the number of a database behind the /",
		"redis-cluster://a?master=secret":                          "must have no options",
		"redis-sentinel://a,b":                                     "must have ?master=NAME",
		"redis-sentinel://a?master=":                               "has the option master without a value, or twice",
		"redis-sentinel://a?master=m&master=n":                     "has the option master without a value, or twice",
		"redis-sentinel://a?master=m&skip_verify=true":             "has an option that is not one of master, sentinel_username, sentinel_password",
		"rediss-sentinel://a?master=m&skip_verify=1":               "skip_verify with another value than true",
		"redis-sentinel://a?master=m&sentinel_username=u":          "has a sentinel_username without a sentinel_password",
		"redis-sentinel://a?master=m&sentinel_password=top&secret": "has an option that is not one of",
		"redis-sentinel://a?master=m&sentinel_password=%zzsecret":  "has options that cannot be read",
		"redis-sentinel://a,secret:b?master=m":                     "must have host or host:port for every node or sentinel",
	} {
		_, err := ParseRedisURL(url)
		_, loading := LoadDev([]string{"REDIS_URL=" + string(url)})
		if err == nil || loading == nil {
			t.Errorf("%s: %v, %v", string(url), err, loading)
			continue
		}
		wrong := strings.TrimPrefix(err.Error(), "REDIS_URL: ")
		if !strings.Contains(wrong, want) || !strings.Contains(loading.Error(), wrong) ||
			slices.ContainsFunc([]string{"top", "secret"}, func(s string) bool { return strings.Contains(loading.Error()+err.Error(), s) }) {
			t.Errorf("%s: %v; %v; want %s", string(url), err, loading, want)
		}
	}
}
