package testenv

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
)

// clusterSlots is how many slots every Redis Cluster has.
const clusterSlots = 16384

// RedisCluster starts a Redis Cluster of three nodes for this test alone, and
// returns their addresses, with commas. It is stopped when the test ends.
func RedisCluster(t testing.TB) string {
	t.Helper()
	const size = 3
	var addrs []string
	var nodes []*redis.Client
	for range size {
		s := own(t, func(ctx context.Context, c devstack.Config) (*devstack.Server, error) {
			c.ClusterNode = true
			return devstack.StartRedis(ctx, c)
		})
		o, err := redis.ParseURL(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		node := redis.NewClient(o)
		t.Cleanup(func() { _ = node.Close() })
		addrs, nodes = append(addrs, o.Addr), append(nodes, node)
	}
	if err := joinCluster(t.Context(), nodes, addrs); err != nil {
		t.Fatalf("join the cluster: %v", err)
	}
	return strings.Join(addrs, ",")
}

// joinCluster spreads the slots over the nodes, and waits until all of them
// know all others.
func joinCluster(ctx context.Context, nodes []*redis.Client, addrs []string) error {
	for i, node := range nodes {
		if err := node.ClusterAddSlotsRange(ctx, i*clusterSlots/len(nodes), (i+1)*clusterSlots/len(nodes)-1).Err(); err != nil {
			return err
		}
		host, port, _ := strings.Cut(addrs[i], ":")
		if err := nodes[0].ClusterMeet(ctx, host, port).Err(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, node := range nodes {
		for {
			info, err := node.ClusterInfo(ctx).Result()
			if err != nil {
				return err
			}
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", len(nodes))) {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}
