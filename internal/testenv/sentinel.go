package testenv

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// Names and passwords in the world of [StartSentinels].
const (
	masterName       = "primary"
	serverPassword   = "of-redis&more"  // of servers that live as long as a test
	sentinelPassword = "of-sentinels+&" // as above
	sentinels        = 3
)

// Sentinels watch a Redis with a replica. A test may kill all of these servers.
type Sentinels struct {
	T
	URL     string // that names them and their master
	Master  *devstack.Server
	Replica redisclient.Client
	clients []redisclient.Client
}

// StartSentinels starts a Redis, a replica of it and three sentinels for this test
// alone. Servers and sentinels ask for a password each. The sentinels do not
// mind that the master is lost before [Sentinels.Promote]. All are stopped when
// the test ends.
func StartSentinels(t T) *Sentinels {
	t.Helper()
	s := &Sentinels{T: t, Master: OwnRedis(t)}
	master := RedisClient(t, s.Master.URL, impatient)
	replica := OwnRedis(t)
	s.Replica = RedisClient(t, replica.URL, impatient, func(o *redisclient.Options) { o.Password = serverPassword })
	host, port, _ := strings.Cut(addrOf(s.Master), ":")
	ConfigSet(t, master, "repl-diskless-sync-delay", "0")
	ConfigSet(t, master, "masterauth", serverPassword)
	ConfigSet(t, master, "requirepass", serverPassword)
	open := RedisClient(t, replica.URL)
	ConfigSet(t, open, "masterauth", serverPassword)
	Check(t, open.ReplicaOf(t.Context(), host, port).Err())
	ConfigSet(t, open, "requirepass", serverPassword)
	AwaitReplica(t, s.Replica)
	var addrs []string
	for range sentinels {
		addrs = append(addrs, s.start(host, port))
	}
	s.await()
	s.URL = (&url.URL{
		Scheme: "redis-sentinel", User: url.UserPassword("", serverPassword), Host: strings.Join(addrs, ","), Path: "/0",
		RawQuery: url.Values{"master": {masterName}, "sentinel_password": {sentinelPassword}}.Encode(),
	}).String()
	return s
}

func (s *Sentinels) start(host, port string) (addr string) {
	s.Helper()
	program, err := devstack.RedisProgram()
	Check(s.T, err)
	addr = FreeAddr(s.T)
	own, ownPort, _ := strings.Cut(addr, ":")
	dir := s.TempDir()
	file := filepath.Join(dir, "sentinel.conf") // which it writes, too
	Check(s.T, os.WriteFile(file, []byte(strings.Join([]string{
		"bind " + own, "port " + ownPort, "dir " + dir, `requirepass "` + sentinelPassword + `"`, `sentinel sentinel-pass "` + sentinelPassword + `"`,
		fmt.Sprintf("sentinel monitor %s %s %s %d", masterName, host, port, sentinels/2+1),
		fmt.Sprintf("sentinel auth-pass %s %s", masterName, serverPassword),
		fmt.Sprintf("sentinel down-after-milliseconds %s 600000", masterName),
		fmt.Sprintf("sentinel failover-timeout %s 3000", masterName), "",
	}, "\n")), 0o600))
	StartCommand(s.T, process.Command{Name: "sentinel", Path: program, Args: []string{file, "--sentinel"}, Dir: dir, Log: filepath.Join(dir, "log")})
	client := redisclient.Open(redisclient.Options{Addrs: []string{addr}, Password: sentinelPassword})
	s.Cleanup(func() { _ = client.Close() })
	s.clients = append(s.clients, client)
	return addr
}

// await waits until each sentinel knows the others and the replica.
func (s *Sentinels) await() {
	s.Helper()
	for _, sentinel := range s.clients {
		Until(s.T, 50*time.Millisecond, "the sentinels know each other and the replica", func() bool {
			cmd := redis.NewMapStringStringCmd(s.Context(), "sentinel", "master", masterName)
			err := sentinel.Process(s.Context(), cmd)
			about := cmd.Val()
			return err == nil && about["num-other-sentinels"] == strconv.Itoa(sentinels-1) && about["num-slaves"] == "1"
		})
	}
}

// Promote makes the sentinels give up the killed master, and waits until the replica is the master. Sentinels reject a
// replica that was without its master for ten times their time-out, hence five seconds.
func (s *Sentinels) Promote() {
	s.Helper()
	for _, sentinel := range s.clients {
		Check(s.T, sentinel.Do(s.Context(), "sentinel", "set", masterName, "down-after-milliseconds", "5000").Err())
	}
	Until(s.T, 20*time.Millisecond, "the replica is the master", func() bool { return role(s.T, s.Replica) == "master" })
}
