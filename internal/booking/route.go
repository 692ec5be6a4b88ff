package booking

import (
	"strings"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// OwnChannel is the state of a channel that a tenant has made.
type OwnChannel struct {
	Version            int64 // 0: there is no such channel
	Disabled, Deleting bool
}

// ChannelDeletedReason is the last error of a push that was canceled because its tenant deleted the channel.
const ChannelDeletedReason = "channel-deleted"

// A waiting push is found by its route: the name of the operator's channel, or that of [RouteTo].

// OwnRoute stands for all channels that tenants have made.
const OwnRoute = "*"

// RouteTo returns the route of the channel of a name that a tenant has made. It begins with [OwnRoute].
func RouteTo(tenant uuid.UUID, name string) string { return OwnRoute + tenant.String() + "/" + name }

// OwnerOf returns the tenant that has made the channel of a route, and the channel's name. own is false for a route to a
// channel of the operator.
func OwnerOf(route string) (tenant uuid.UUID, name string, own bool) {
	of, name, own := strings.Cut(strings.TrimPrefix(route, OwnRoute), "/")
	if !own {
		return uuid.Nil, route, false
	}
	tenant, err := uuid.Parse(of)
	return tenant, name, err == nil
}

// RouteOf returns the route of a waiting push.
func RouteOf(p *push.Push) string {
	if p.Own {
		return RouteTo(p.Tenant, p.Channel)
	}
	return p.Channel
}
