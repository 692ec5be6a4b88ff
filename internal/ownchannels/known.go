package ownchannels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// known has what this process knows of a tenant's channels.
type known struct {
	usedAt  atomic.Int64 // in Unix nanoseconds
	changes atomic.Int64 // grows when the channels have to be read again
	current atomic.Pointer[channels]

	mu     sync.Mutex // held while they are read
	failed time.Time  // when a read failed last
}

// channels are a tenant's channels as they were read at one time. They never change.
type channels struct {
	own     tenantchannel.Own
	names   []string // see [Directory.Names]
	entries map[string]entry
	changes int64 // that the read includes
	readAt  time.Time
}

// entry is a channel of a tenant that this process has opened.
type entry struct {
	channel.Entry
	version  int64
	settings config.Channel // without secrets
	since    time.Time      // of its last change
	err      error          // why it cannot be used, although it may be open
}

// fresh returns the channels if they need not be read again; otherwise nil.
func (k *known) fresh(now time.Time, version int64) *channels {
	c := k.current.Load()
	if c == nil || c.changes != k.changes.Load() || now.Sub(c.readAt) >= freshFor || c.own.Version < version {
		return nil
	}
	return c
}

// close closes the idle connections of a tenant's channels.
func (k *known) close() {
	if c := k.current.Load(); c != nil {
		for _, e := range c.entries {
			closeIdle(e.Channel)
		}
	}
}

// closeIdle closes the idle connections of a channel. Attempts under way continue.
func closeIdle(c channel.Channel) {
	if of, ok := c.(channel.Connected); ok {
		of.CloseIdle()
	}
}

// of returns the channels of a tenant, of a version or a later one.
func (d *Directory) of(tenant uuid.UUID, version int64) (*channels, error) {
	now := time.Now()
	d.mu.RLock()
	k := d.tenants[tenant]
	d.mu.RUnlock()
	if k == nil {
		k = d.add(tenant)
	}
	k.usedAt.Store(now.UnixNano())
	if c := k.fresh(now, version); c != nil {
		return c, nil
	}
	return d.read(k, tenant, version)
}

// add notes that a tenant uses channels.
func (d *Directory) add(tenant uuid.UUID) *known {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.tenants[tenant]
	if k == nil {
		k = &known{}
		k.usedAt.Store(time.Now().UnixNano())
		d.tenants[tenant] = k
	}
	return k
}

// read reads the channels of a tenant, unless another call has done so meanwhile.
func (d *Directory) read(k *known, tenant uuid.UUID, version int64) (*channels, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.fresh(time.Now(), version); c != nil {
		return c, nil
	}
	if time.Since(k.failed) < loadPause {
		return k.asKnown(version, errNotRead)
	}
	d.loads <- struct{}{}
	defer func() { <-d.loads }()
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	c := &channels{readAt: time.Now(), changes: k.changes.Load()}
	var err error
	if c.own, err = d.reader.KnownChannels(ctx, tenant); err != nil {
		k.failed = time.Now()
		return k.asKnown(version, err)
	}
	replaced := d.openAll(c, k.current.Load())
	c.names = d.namesFor(c)
	k.current.Store(c)
	for _, e := range replaced {
		closeIdle(e.Channel)
	}
	return c, nil
}

var errNotRead = errors.New("no answer from Postgres")

// asKnown returns the channels as they were read last. If they are older than a version, it returns why they could not be read.
func (k *known) asKnown(version int64, err error) (*channels, error) {
	if c := k.current.Load(); c != nil && c.own.Version >= version {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
}

// openAll opens the channels that have changed since before, which may be nil. It returns the ones that are used no more.
func (d *Directory) openAll(c, before *channels) (replaced map[string]entry) {
	if before != nil {
		replaced = maps.Clone(before.entries)
	}
	c.entries = make(map[string]entry, len(c.own.Channels))
	for _, s := range c.own.Channels {
		if e, same := replaced[s.Name]; same && e.version == s.Version && (e.err == nil || e.Channel != nil) {
			c.entries[s.Name] = e
			delete(replaced, s.Name)
			continue
		}
		e := entry{version: s.Version, since: s.UpdatedAt}
		e.Entry, e.settings, e.err = d.opened(s)
		e.Entry.Version = s.Version
		if e.err != nil && e.Channel == nil {
			d.log.Warn("cannot open a tenant's channel; its pushes wait", "tenant", c.own.Tenant, "channel", s.Name, "error", cmp.Or(s.Fault, e.err))
		}
		c.entries[s.Name] = e
	}
	return replaced
}

// namesFor lists the names of a tenant's channels; see [Directory.Names].
func (d *Directory) namesFor(c *channels) []string {
	names := slices.DeleteFunc(d.operator.Names(), func(name string) bool {
		_, own := c.entries[name]
		return !own && !d.offers(c.own.Name, name)
	})
	for _, s := range c.own.Channels {
		if !slices.Contains(names, s.Name) && !s.Deleting {
			names = append(names, s.Name)
		}
	}
	return slices.Clip(names)
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
