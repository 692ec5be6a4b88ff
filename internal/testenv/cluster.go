package testenv

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
)

const (
	clusterSlots = 16384 // of every Redis Cluster
	masters      = 3     // of ours
)

// RedisCluster starts a Redis Cluster of three nodes for this test alone, and
// returns their addresses, with commas. It is stopped when the test ends.
func RedisCluster(t T) string {
	t.Helper()
	return startCluster(t, masters).Addrs()
}

// Cluster is a Redis Cluster whose nodes a test may kill.
type Cluster struct {
	T
	Nodes   []*devstack.Server // the three first masters, and then the replica of each
	clients []redisclient.Client
}

// ReplicatedCluster starts a Redis Cluster of three masters with a replica each for
// this test alone. It gives up no node that is lost before [Cluster.Promote]. It
// is stopped when the test ends.
func ReplicatedCluster(t T) *Cluster {
	t.Helper()
	c := startCluster(t, 2*masters)
	for i, replica := range c.clients[masters:] {
		ConfigSet(t, replica, "repl-diskless-sync-delay", "0")
		ConfigSet(t, c.clients[i], "repl-diskless-sync-delay", "0")
		id, err := c.clients[i].ClusterMyID(t.Context()).Result()
		Check(t, err)
		Check(t, replica.ClusterReplicate(t.Context(), id).Err())
	}
	for _, replica := range c.clients[masters:] {
		AwaitReplica(t, replica)
	}
	c.each(func(node redisclient.Client) { ConfigSet(t, node, "cluster-node-timeout", "600000") })
	return c
}

// startCluster starts nodes. The first three are masters with slots.
func startCluster(t T, size int) *Cluster {
	t.Helper()
	c := &Cluster{T: t}
	for range size {
		s := own(t, devstack.StartRedis, devstack.Config{ClusterNode: true})
		c.Nodes, c.clients = append(c.Nodes, s), append(c.clients, RedisClient(t, s.URL, impatient))
	}
	c.join()
	return c
}

// impatient notices soon that a server is gone.
func impatient(o *redisclient.Options) { o.DialerRetries, o.MaxRetries = 1, -1 }

// Addrs are the addresses of the nodes, with commas.
func (c *Cluster) Addrs() string {
	var addrs []string
	for _, node := range c.Nodes {
		addrs = append(addrs, addrOf(node))
	}
	return strings.Join(addrs, ",")
}

// join spreads the slots over the masters, and waits until all nodes know all
// others.
func (c *Cluster) join() {
	c.Helper()
	ctx := c.Context()
	for i, node := range c.clients {
		// Nodes with the same epoch change it later, each by itself. If a master is killed then, some nodes may know
		// its new epoch, and would reject a replica with a lower one for its slots.
		Check(c.T, node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
	}
	for i, node := range c.clients {
		if i < masters {
			Check(c.T, node.ClusterAddSlotsRange(ctx, i*clusterSlots/masters, (i+1)*clusterSlots/masters-1).Err())
		}
		host, port, _ := strings.Cut(addrOf(c.Nodes[i]), ":")
		Check(c.T, c.clients[0].ClusterMeet(ctx, host, port).Err())
	}
	c.each(func(node redisclient.Client) {
		Until(c.T, 20*time.Millisecond, "the nodes join the cluster", func() bool {
			info, err := node.ClusterInfo(ctx).Result()
			Check(c.T, err)
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(c.clients)))
		})
	})
}

// addrOf returns host:port.
func addrOf(s *devstack.Server) string {
	u, err := url.Parse(s.URL)
	if err != nil {
		panic(err)
	}
	return u.Host
}

func (c *Cluster) each(do func(redisclient.Client)) {
	for i, node := range c.clients {
		if c.Nodes[i].Pid() != 0 {
			do(node)
		}
	}
}

// SlotOf is the slot of a key.
func (c *Cluster) SlotOf(key string) int64 {
	c.Helper()
	slot, err := c.clients[0].ClusterKeySlot(c.Context(), key).Result()
	Check(c.T, err)
	return slot
}

// MasterOf is the number of the first master that had the slot of a key when the
// cluster began.
func (c *Cluster) MasterOf(key string) int {
	c.Helper()
	for master := range masters - 1 {
		if c.SlotOf(key) < int64((master+1)*clusterSlots/masters) {
			return master
		}
	}
	return masters - 1
}

// Promote makes the nodes give up a killed master, and waits until its replica has its slots. The replica takes over
// without the votes of the other masters, which a busy machine delays.
func (c *Cluster) Promote(master int) {
	c.Helper()
	c.each(func(node redisclient.Client) { ConfigSet(c.T, node, "cluster-node-timeout", "1000") })
	c.Cleanup(func() {
		if c.Failed() {
			c.each(func(node redisclient.Client) {
				c.Logf("a node knows:\n%s", node.ClusterNodes(context.Background()).Val())
			})
		}
	})
	replica := c.clients[masters+master]
	Check(c.T, replica.Do(c.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
	Until(c.T, 20*time.Millisecond, "the replica is a master", func() bool { return role(c.T, replica) == "master" })
	c.each(func(node redisclient.Client) {
		Until(c.T, 20*time.Millisecond, "the cluster is complete", func() bool {
			info, err := node.ClusterInfo(c.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok")
		})
	})
}

// MoveSlots moves the slots that hold keys from one first master to another, as
// redis-cli --cluster reshard does, and returns how many keys went.
func (c *Cluster) MoveSlots(from, to int) (keys int) {
	c.Helper()
	for _, slot := range c.slotsInUse(from) {
		keys += c.moveSlot(slot, from, to)
	}
	return keys
}

func (c *Cluster) slotsInUse(node int) (slots []int64) {
	c.Helper()
	all := c.clients[node].Scan(c.Context(), 0, "*", 1000).Iterator()
	for all.Next(c.Context()) {
		slots = append(slots, c.SlotOf(all.Val()))
	}
	Check(c.T, all.Err())
	slices.Sort(slots)
	return slices.Compact(slots)
}

func (c *Cluster) moveSlot(slot int64, from, to int) (keys int) {
	c.Helper()
	end := c.BeginMove(slot, from, to)
	for c.moveKey(slot, from, to) {
		keys++
	}
	end()
	return keys
}

// BeginMove begins to move a slot from one first master to another, without its
// keys. The returned function ends that, with the keys that are left.
func (c *Cluster) BeginMove(slot int64, from, to int) (end func()) {
	c.Helper()
	source, target := c.clients[from].ClusterMyID(c.Context()).Val(), c.clients[to].ClusterMyID(c.Context()).Val()
	c.setSlot(to, slot, "IMPORTING", source)
	c.setSlot(from, slot, "MIGRATING", target)
	return func() {
		c.Helper()
		for c.moveKey(slot, from, to) {
		}
		c.setSlot(to, slot, "NODE", target) // the others learn it by gossip
		c.setSlot(from, slot, "NODE", target)
	}
}

func (c *Cluster) setSlot(node int, slot int64, args ...any) {
	c.Helper()
	Check(c.T, c.clients[node].Do(c.Context(), append([]any{"CLUSTER", "SETSLOT", slot}, args...)...).Err())
}

// moveKey moves any key of a slot, if there is one.
func (c *Cluster) moveKey(slot int64, from, to int) (moved bool) {
	c.Helper()
	keys, err := c.clients[from].ClusterGetKeysInSlot(c.Context(), int(slot), 1).Result()
	Check(c.T, err)
	if len(keys) > 0 {
		c.MoveKey(keys[0], from, to)
	}
	return len(keys) > 0
}

// MoveKey moves a key of a slot that is being moved.
func (c *Cluster) MoveKey(key string, from, to int) {
	c.Helper()
	host, port, _ := strings.Cut(addrOf(c.Nodes[to]), ":")
	Check(c.T, c.clients[from].Migrate(c.Context(), host, port, key, 0, time.Minute).Err())
}

// ConfigSet changes a setting of a server.
func ConfigSet(t T, rdb redisclient.Client, name, value string) {
	t.Helper()
	Check(t, rdb.ConfigSet(t.Context(), name, value).Err())
}

// AwaitReplica waits until a replica has the data of its master.
func AwaitReplica(t T, rdb redisclient.Client) {
	t.Helper()
	Until(t, 20*time.Millisecond, "the replica has the data of its master", func() bool {
		info, err := rdb.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}

// role is "master", "slave", or empty if the server does not answer.
func role(t T, rdb redisclient.Client) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	info, _ := rdb.Info(ctx, "replication").Result()
	_, after, _ := strings.Cut(info, "role:")
	name, _, _ := strings.Cut(after, "\r")
	return name
}
