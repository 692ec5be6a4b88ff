package testenv

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
)

// clusterSlots is how many slots every Redis Cluster has.
const clusterSlots = 16384

// RedisCluster starts a Redis Cluster of three nodes for this test alone, and
// returns their addresses, with commas. It is stopped when the test ends.
func RedisCluster(t T) string {
	t.Helper()
	const size = 3
	var addrs []string
	var nodes []*redis.Client
	for range size {
		node := RedisClient(t, own(t, devstack.StartRedis, devstack.Config{ClusterNode: true}).URL)
		addrs, nodes = append(addrs, node.Options().Addr), append(nodes, node)
	}
	joinCluster(t, nodes, addrs)
	return strings.Join(addrs, ",")
}

// joinCluster spreads the slots over the nodes, and waits until all of them
// know all others.
func joinCluster(t T, nodes []*redis.Client, addrs []string) {
	t.Helper()
	ctx := t.Context()
	for i, node := range nodes {
		Check(t, node.ClusterAddSlotsRange(ctx, i*clusterSlots/len(nodes), (i+1)*clusterSlots/len(nodes)-1).Err())
		host, port, _ := strings.Cut(addrs[i], ":")
		Check(t, nodes[0].ClusterMeet(ctx, host, port).Err())
	}
	for _, node := range nodes {
		Until(t, 20*time.Millisecond, "the nodes join the cluster", func() bool {
			info, err := node.ClusterInfo(ctx).Result()
			Check(t, err)
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(nodes)))
		})
	}
}
