package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

func openRedis(t testenv.T, url string, connections int) redisclient.Client {
	return testenv.RedisClient(t, url+"?pool_size="+strconv.Itoa(connections))
}

// sharedBuffers returns the size of Postgres' page cache in megabytes: a quarter of the machine's memory, as its manual
// suggests, and at most 4 GB.
func sharedBuffers() int {
	const least, most = 128, 4096
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return least
	}
	var kilobytes int
	_, rest, _ := strings.Cut(string(text), "MemTotal:")
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		return least
	}
	return max(least, min(most, kilobytes>>10/4))
}

// checkpoint writes out what earlier rounds have left behind, so that a round
// does not pay for another's dirty pages.
func (l *lab) checkpoint() {
	_, err := l.postgres.Exec(l.Context(), "CHECKPOINT")
	l.check(err)
}

// redisMemory returns how many bytes Redis uses for data: without what the
// connections and the append-only file have buffered just now.
func (l *lab) redisMemory() (sum int64) {
	info := l.redis.InfoMap(l.Context(), "memory")
	l.check(info.Err())
	for name, sign := range map[string]int64{"used_memory": 1, "mem_clients_normal": -1, "mem_aof_buffer": -1} {
		n, err := strconv.ParseInt(info.Item("Memory", name), 10, 64)
		l.check(err)
		sum += sign * n
	}
	return sum
}

func (l *lab) redisVersion() string {
	info := l.redis.InfoMap(l.Context(), "server")
	l.check(info.Err())
	return info.Item("Server", "redis_version")
}

// postgresVersion returns the version of Postgres and its shared_buffers.
func (l *lab) postgresVersion() string {
	var version, buffers string
	l.check(l.postgres.QueryRow(l.Context(), "SELECT current_setting('server_version'), current_setting('shared_buffers')").Scan(&version, &buffers))
	version, _, _ = strings.Cut(version, " ")
	return version + " with " + buffers + " of shared_buffers"
}
