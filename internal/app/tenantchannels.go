package app

import (
	"errors"
	"log/slog"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// TenantChannelBounds returns the bounds of tenants' channels with the checks that the settings cannot make.
func TenantChannelBounds(cfg config.Config) config.TenantChannels {
	bounds := cfg.TenantChannels
	bounds.Checks = config.ChannelChecks{
		Host: func(host string) string {
			fault, _ := outbound.HostFault(host)
			return fault
		},
		AppleKey: channel.AppleKeyFault, GoogleCredentials: channel.GoogleCredentialsFault,
	}
	return bounds
}

// openDirectory returns the directory of tenants' channels.
func (a *App) openDirectory() *ownchannels.Directory {
	open := func(c config.Channel) (channel.Entry, error) {
		if c.APNs.KeyFile+c.FCM.CredentialsFile != "" {
			return channel.Entry{}, errors.New("a tenant's channel reads no file")
		}
		return openChannel(c, a.log)
	}
	return ownchannels.NewDirectory(a.channels, a.cfg.Channels, a.store, open, TenantChannelBounds(a.cfg), a.cfg.Delivery.Lease, a.log)
}

// ownChannels returns the service of tenants' channels.
func (a *App) ownChannels() *ownchannels.Service {
	return ownchannels.NewService(a.store, a.directory, ownchannels.ServiceConfig{
		Bounds: TenantChannelBounds(a.cfg), Lease: a.cfg.Delivery.Lease,
		Released: func(e booking.Ended) {
			if a.cache == nil { // its entries expire
				return
			}
			a.cache.Release(quota.Recipient{Tenant: e.Tenant, ID: e.Recipient}, quota.Booking{ID: e.ID, Kind: e.Kind})
		},
	})
}

// OwnChannels returns the service of tenants' channels for a tool that has only Postgres.
func OwnChannels(cfg config.Config, st *store.Store, log *slog.Logger) *ownchannels.Service {
	a := &App{cfg: cfg, store: st, log: log, channels: &channel.Set{}}
	a.directory = a.openDirectory()
	return a.ownChannels()
}
