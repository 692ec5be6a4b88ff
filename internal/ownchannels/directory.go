package ownchannels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/sms"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

const (
	watchEvery = 500 * time.Millisecond
	loadTime   = 2 * time.Second
	loadPause  = 250 * time.Millisecond // after a read that failed
	// After idleAfter without a use, a tenant's channels are closed and forgotten.
	idleAfter = 5 * time.Minute
	// A process reads the channels of loadsAtOnce tenants at the same time: thousands may begin to send in the same second, and others
	// need Postgres, too.
	loadsAtOnce = 4
	// An entry is read again after freshFor, because the name of the tenant may have changed, which OfferedTo uses.
	freshFor = time.Minute
)

// ErrUnusable reports that a tenant's channel cannot be used now: its pushes wait.
var ErrUnusable = errors.New("the tenant's channel cannot be used")

// Reader reads the channels of tenants.
type Reader interface {
	KnownChannels(ctx context.Context, tenant uuid.UUID) (tenantchannel.Own, error)
	ChannelChanges(ctx context.Context, since int64) (tenants []uuid.UUID, latest int64, err error)
}

// Opener opens a channel from its settings.
type Opener func(c config.Channel) (channel.Entry, error)

// Directory finds the channel of a name for a tenant: the tenant's own, or else the operator's. It keeps the channels of
// tenants that use them, and notices changes within a second. It is safe for concurrent use.
type Directory struct {
	operator *channel.Set
	offered  map[string][]string // the names of the tenants that may use a channel of the operator; absent: all
	reader   Reader
	open     Opener
	bounds   config.TenantChannels
	lease    time.Duration
	log      *slog.Logger

	loads chan struct{} // has an element for each read under way

	mu      sync.Mutex
	tenants map[uuid.UUID]*known
	seen    int64 // the version of the changes that were noticed
}

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
	err      error          // why it cannot be used
}

// NewDirectory returns a directory. offered lists the channels of the operator with their tenants.
func NewDirectory(operator *channel.Set, configured []config.Channel, reader Reader, open Opener, bounds config.TenantChannels, lease time.Duration, log *slog.Logger) *Directory {
	d := &Directory{operator: operator, offered: map[string][]string{}, reader: reader, open: open, bounds: bounds, lease: lease, log: log, loads: make(chan struct{}, loadsAtOnce), tenants: map[uuid.UUID]*known{}}
	for _, c := range configured {
		if c.OfferedTo != nil {
			d.offered[c.Name] = c.OfferedTo
		}
	}
	return d
}

// Run notices changes until ctx ends. Without it, entries are read again every minute.
func (d *Directory) Run(ctx context.Context) error {
	return loop.Loop{Name: "watch channels of tenants", Interval: watchEvery, Retry: watchEvery, Log: d.log, Pass: d.watch}.Run(ctx)
}

func (d *Directory) watch(ctx context.Context) (full bool, err error) {
	d.mu.Lock()
	since := d.seen
	d.mu.Unlock()
	changed, latest, err := d.reader.ChannelChanges(ctx, since)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	d.seen = max(d.seen, latest)
	var idle []*known
	for _, tenant := range changed {
		if k := d.tenants[tenant]; k != nil {
			k.changed.Store(true)
		}
	}
	for tenant, k := range d.tenants {
		if time.Since(time.Unix(0, k.usedAt.Load())) > idleAfter {
			delete(d.tenants, tenant)
			idle = append(idle, k)
		}
	}
	d.mu.Unlock()
	for _, k := range idle {
		k.close()
	}
	return false, nil
}

// InUse reports whether any tenant has, or had, a channel. It learns of the first one with the other changes.
func (d *Directory) InUse() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen > 0
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

// Refresh has a tenant's channels read again before their next use: this process has changed them.
func (d *Directory) Refresh(tenant uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.tenants[tenant]; k != nil {
		k.changed.Store(true)
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
		if e, same := before[c.Name]; same && e.version == c.Version {
			k.entries[c.Name] = e
			delete(before, c.Name)
			continue
		}
		e := entry{version: c.Version}
		e.Entry, e.settings, e.err = d.opened(c)
		if e.err != nil && !c.Disabled && !c.Deleting {
			d.log.Warn("cannot open a tenant's channel; its pushes wait", "tenant", own.Tenant, "channel", c.Name, "error", e.err)
		}
		k.entries[c.Name] = e
	}
	for _, e := range before {
		closeIdle(e.Channel)
	}
}

// opened opens a stored channel.
func (d *Directory) opened(c tenantchannel.Channel) (e channel.Entry, shown config.Channel, err error) {
	shown = config.Channel{Name: c.Name, Type: c.Type, Disabled: c.Disabled}
	switch {
	case c.Deleting:
		return e, shown, tenantchannel.ErrDeleting
	case c.Disabled:
		return e, shown, errors.New("it is disabled")
	case c.Fault != nil:
		return e, shown, c.Fault
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

func stored(c tenantchannel.Channel) config.TenantChannel {
	s := config.TenantChannel{Settings: c.Settings, Secrets: map[string]config.Secret{}}
	for name, text := range c.Secrets {
		s.Secrets[name] = config.Secret(text)
	}
	return s
}

// Get returns the channel of a name for a tenant, and whether it is the tenant's own, or may be. The error wraps [ErrUnusable]
// if pushes have to wait.
func (d *Directory) Get(tenant uuid.UUID, name string) (e channel.Entry, own bool, err error) {
	k, err := d.of(tenant, 0)
	if err != nil {
		return e, true, err
	}
	defer k.mu.Unlock()
	if mine, ok := k.entries[name]; ok {
		e, err = mine.usable()
		return e, true, err
	}
	e, ok := d.operator.Get(name)
	if !ok || !d.offers(k.own.Name, name) {
		return channel.Entry{}, false, errNotConfigured
	}
	return e, false, nil
}

var errNotConfigured = fmt.Errorf("%w: the channel is not configured", ErrUnusable)

func (e entry) usable() (channel.Entry, error) {
	if e.err != nil {
		return channel.Entry{}, fmt.Errorf("%w: %w", ErrUnusable, e.err)
	}
	return e.Entry, nil
}

// Claimed returns the channel for a claimed push. The version is that of the tenant's own channel, which the claim has read; 0:
// the tenant has none of that name, and the channel is the operator's.
func (d *Directory) Claimed(tenant uuid.UUID, name string, version int64) (channel.Entry, error) {
	_, limited := d.offered[name]
	if version == 0 && !limited {
		if e, ok := d.operator.Get(name); ok {
			return e, nil
		}
		return channel.Entry{}, errNotConfigured
	}
	k, err := d.of(tenant, version)
	if err != nil {
		return channel.Entry{}, err
	}
	defer k.mu.Unlock()
	if version > 0 {
		mine, ok := k.entries[name]
		if !ok {
			return channel.Entry{}, fmt.Errorf("%w: it was deleted", ErrUnusable)
		}
		return mine.usable()
	}
	if e, ok := d.operator.Get(name); ok && d.offers(k.own.Name, name) {
		return e, nil
	}
	return channel.Entry{}, errNotConfigured
}

// offers reports whether a tenant may use a channel of the operator.
func (d *Directory) offers(tenant, name string) bool {
	offered, limited := d.offered[name]
	return !limited || slices.Contains(offered, tenant)
}

// Names lists the channels of a tenant: the operator's in their order, and then its own. The first is the default. If Postgres
// does not answer, it lists what was last known.
func (d *Directory) Names(tenant uuid.UUID) []string {
	k, err := d.of(tenant, 0)
	if err != nil {
		return d.operator.Names()
	}
	defer k.mu.Unlock()
	names := slices.DeleteFunc(d.operator.Names(), func(name string) bool {
		_, own := k.entries[name]
		return !own && !d.offers(k.own.Name, name)
	})
	for _, c := range k.own.Channels {
		if !slices.Contains(names, c.Name) && !c.Deleting {
			names = append(names, c.Name)
		}
	}
	return names
}

// Listed is a channel of a tenant in a list.
type Listed struct {
	Name     string
	Own      bool
	Settings config.Channel // of an own channel: its type, its speed and its levels
}

// List lists the channels of a tenant, in the order of Names.
func (d *Directory) List(tenant uuid.UUID) []Listed {
	names := d.Names(tenant)
	all := make([]Listed, len(names))
	k, err := d.of(tenant, 0)
	if err == nil {
		defer k.mu.Unlock()
	}
	for i, name := range names {
		all[i].Name = name
		if err == nil {
			mine, own := k.entries[name]
			all[i].Own, all[i].Settings = own, mine.settings
		}
	}
	return all
}

// Check returns what the provider behind a tenant's channel would certainly refuse. It finds nothing for a channel that does
// not exist, or cannot be opened.
func (d *Directory) Check(tenant uuid.UUID, name, to string, message json.RawMessage) invalid.FieldErrors {
	e, _, err := d.Get(tenant, name)
	if err != nil {
		return nil
	}
	return e.Channel.Check(to, message)
}

// Size returns the size of the text that a tenant's channel would send, and whether it sends text messages.
func (d *Directory) Size(tenant uuid.UUID, name string, message json.RawMessage) (size sms.Size, is bool) {
	e, _, err := d.Get(tenant, name)
	if err != nil {
		return size, false
	}
	return e.Size(message)
}

// Fault returns why a tenant's own channel cannot be used, or nil.
func (d *Directory) Fault(tenant uuid.UUID, name string) error {
	k, err := d.of(tenant, 0)
	if err != nil {
		return err
	}
	defer k.mu.Unlock()
	return k.entries[name].err
}
