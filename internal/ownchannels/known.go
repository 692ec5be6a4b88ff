package ownchannels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// known has the channels of a tenant.
type known struct {
	usedAt  atomic.Int64 // in Unix nanoseconds
	changed atomic.Bool  // to be read again

	mu      sync.Mutex
	own     tenantchannel.Own
	entries map[string]entry
	readAt  time.Time // zero: not read yet
	failed  time.Time // when a read failed last
}

// entry is a channel of a tenant that this process has opened.
type entry struct {
	channel.Entry
	version  int64
	settings config.Channel // without secrets
	since    time.Time      // of its last change
	err      error          // why it cannot be used, although it may be open
}

// close closes the idle connections of a tenant's channels.
func (k *known) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.entries {
		closeIdle(e.Channel)
	}
}

// closeIdle closes the idle connections of a channel. Attempts under way continue.
func closeIdle(c channel.Channel) {
	if of, ok := c.(channel.Connected); ok {
		of.CloseIdle()
	}
}

// of returns the channels of a tenant, locked.
func (d *Directory) of(tenant uuid.UUID, version int64) (*known, error) {
	d.mu.Lock()
	k := d.tenants[tenant]
	if k == nil {
		k = &known{}
		d.tenants[tenant] = k
	}
	k.usedAt.Store(time.Now().UnixNano())
	d.mu.Unlock()
	k.mu.Lock()
	if !k.changed.Swap(false) && time.Since(k.readAt) < freshFor && k.own.Version >= version {
		return k, nil
	}
	if time.Since(k.failed) < loadPause {
		return k.asKnown(version, errNotRead)
	}
	d.loads <- struct{}{}
	defer func() { <-d.loads }()
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	at := time.Now()
	own, err := d.reader.KnownChannels(ctx, tenant)
	if err != nil {
		k.failed = time.Now()
		return k.asKnown(version, err)
	}
	k.take(d, own)
	k.readAt = at
	return k, nil
}

var errNotRead = errors.New("no answer from Postgres")

// asKnown returns the channels as they were read last, locked. Otherwise, or if they are older than a version, it unlocks them, and
// returns why they could not be read.
func (k *known) asKnown(version int64, err error) (*known, error) {
	k.changed.Store(true)
	if k.entries != nil && k.own.Version >= version {
		return k, nil
	}
	k.mu.Unlock()
	return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
}

// take opens the channels that have changed, and closes the others that were opened before.
func (k *known) take(d *Directory, own tenantchannel.Own) {
	before := k.entries
	k.own, k.entries = own, make(map[string]entry, len(own.Channels))
	for _, c := range own.Channels {
		if e, same := before[c.Name]; same && e.version == c.Version && (e.err == nil || e.Channel != nil) {
			k.entries[c.Name] = e
			delete(before, c.Name)
			continue
		}
		e := entry{version: c.Version, since: c.UpdatedAt}
		e.Entry, e.settings, e.err = d.opened(c)
		e.Entry.Version = c.Version
		if e.err != nil && e.Channel == nil {
			d.log.Warn("cannot open a tenant's channel; its pushes wait", "tenant", own.Tenant, "channel", c.Name, "error", cmp.Or(c.Fault, e.err))
		}
		k.entries[c.Name] = e
	}
	for _, e := range before {
		closeIdle(e.Channel)
	}
}

// opened opens a stored channel. It returns an error if the channel may send nothing. A channel that is disabled is open all the same:
// its messages are checked and measured.
func (d *Directory) opened(c tenantchannel.Channel) (e channel.Entry, shown config.Channel, err error) {
	e, shown, err = d.openStored(c)
	switch {
	case c.Deleting:
		err = errDeleting
	case c.Disabled:
		err = errDisabled
	}
	return e, shown, err
}

var (
	errDeleting = errors.New("it is being deleted")
	errDisabled = errors.New("it is disabled")
)

func (d *Directory) openStored(c tenantchannel.Channel) (e channel.Entry, shown config.Channel, err error) {
	shown = config.Channel{Name: c.Name, Type: c.Type, Disabled: c.Disabled}
	switch {
	case c.Fault != nil:
		return e, shown, tenantchannel.ErrSealed
	case !slices.Contains(d.bounds.Types, c.Type):
		return e, shown, fmt.Errorf("tenants may not have channels of type %s", c.Type)
	}
	settings, bad, err := d.bounds.OpenTenantChannel(c.Name, stored(c), d.lease)
	if err != nil {
		return e, shown, err
	}
	if len(bad) > 0 {
		return e, shown, errors.New(bad.WithoutValues())
	}
	shown.Throughput, shown.Levels = settings.Throughput, settings.Levels
	e, err = d.open(settings)
	return e, shown, err
}

// stored returns a channel in the form that is stored.
func stored(c tenantchannel.Channel) config.TenantChannel {
	s := config.TenantChannel{Settings: c.Settings, Secrets: map[string]config.Secret{}}
	for name := range c.SecretAt {
		s.Secrets[name] = config.Secret(c.Secrets[name]) // empty if no key opens it
	}
	return s
}

func (e entry) usable() (channel.Entry, error) {
	if e.err != nil {
		return channel.Entry{}, fmt.Errorf("%w: %w", ErrUnusable, e.err)
	}
	return e.Entry, nil
}
