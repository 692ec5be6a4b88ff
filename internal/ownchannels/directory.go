package ownchannels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
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
	restEvery  = 2 * time.Second // while no tenant's channels are in memory: nothing is out of date then
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

	mu      sync.RWMutex
	tenants map[uuid.UUID]*known
	seen    int64     // the version of the changes that were noticed
	readAt  time.Time // when the changes were read last
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
	since, rests := d.seen, len(d.tenants) == 0 && time.Since(d.readAt) < restEvery-watchEvery/2
	d.mu.Unlock()
	if rests {
		return false, nil
	}
	changed, latest, err := d.reader.ChannelChanges(ctx, since)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	d.seen, d.readAt = max(d.seen, latest), time.Now()
	var idle []*known
	for _, tenant := range changed {
		if k := d.tenants[tenant]; k != nil {
			k.changes.Add(1)
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

// InUse reports whether any tenant has, or had, a channel. It learns of the first one with the other changes, at most two seconds later.
func (d *Directory) InUse() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen > 0
}

// Refresh has a tenant's channels read again before their next use: this process has changed them.
func (d *Directory) Refresh(tenant uuid.UUID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.tenants[tenant]; k != nil {
		k.changes.Add(1)
	}
}

// Get returns the channel of a name for a tenant, and whether it is the tenant's own, or may be. The error wraps [ErrUnusable]
// if pushes have to wait.
func (d *Directory) Get(tenant uuid.UUID, name string) (e channel.Entry, own bool, err error) {
	c, err := d.of(tenant, 0)
	if err != nil {
		return e, true, err
	}
	if mine, ok := c.entries[name]; ok {
		e, err = mine.usable()
		return e, true, err
	}
	e, ok := d.operator.Get(name)
	if !ok || !d.offers(c.own.Name, name) {
		return channel.Entry{}, false, errNotConfigured
	}
	return e, false, nil
}

var errNotConfigured = fmt.Errorf("%w: the channel is not configured", ErrUnusable)

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
	c, err := d.of(tenant, version)
	if err != nil {
		return channel.Entry{}, err
	}
	if version > 0 {
		mine, ok := c.entries[name]
		if !ok {
			return channel.Entry{}, fmt.Errorf("%w: it was deleted", ErrUnusable)
		}
		return mine.usable()
	}
	if e, ok := d.operator.Get(name); ok && d.offers(c.own.Name, name) {
		return e, nil
	}
	return channel.Entry{}, errNotConfigured
}

// offers reports whether a tenant may use a channel of the operator.
func (d *Directory) offers(tenant, name string) bool {
	offered, limited := d.offered[name]
	return !limited || slices.Contains(offered, tenant)
}

// OwnOnly reports whether the operator offers the tenant no channel of a name.
func (d *Directory) OwnOnly(tenant uuid.UUID, name string) bool {
	if _, known := d.operator.Get(name); !known {
		return true
	}
	if _, limited := d.offered[name]; !limited {
		return false
	}
	c, err := d.of(tenant, 0)
	if err != nil {
		return false
	}
	return !d.offers(c.own.Name, name)
}

// Names lists the channels of a tenant: the operator's in their order, and then its own. The first is the default. If Postgres
// does not answer, it lists what was last known. Callers must not change the list.
func (d *Directory) Names(tenant uuid.UUID) []string {
	c, err := d.of(tenant, 0)
	if err != nil {
		return d.operator.Names()
	}
	return c.names
}

// Listed is a channel of a tenant in a list.
type Listed struct {
	Name     string
	Own      bool
	Settings config.Channel // of an own channel: its type, its speed and its levels
}

// List lists the channels of a tenant, in the order of Names, and then those that are being deleted.
func (d *Directory) List(tenant uuid.UUID) []Listed {
	c, err := d.of(tenant, 0)
	if err != nil {
		c = &channels{names: d.operator.Names()}
	}
	var all []Listed
	for _, name := range c.names {
		mine, own := c.entries[name]
		all = append(all, Listed{Name: name, Own: own, Settings: mine.settings})
	}
	for _, s := range c.own.Channels { // what waits for one that is being deleted is shown, too
		if !slices.Contains(c.names, s.Name) {
			all = append(all, Listed{Name: s.Name, Own: true, Settings: c.entries[s.Name].settings})
		}
	}
	return all
}

// Opened returns the channel of a name for a tenant, and whether it is the tenant's own, also while it is disabled and must send nothing.
// The entry has no Channel if there is none of that name, or it cannot be opened.
func (d *Directory) Opened(tenant uuid.UUID, name string) (e channel.Entry, own bool) {
	c, err := d.of(tenant, 0)
	if err != nil {
		return e, false
	}
	if mine, own := c.entries[name]; own {
		return mine.Entry, true
	}
	if d.offers(c.own.Name, name) {
		e, _ = d.operator.Get(name)
	}
	return e, false
}

// Check returns what the provider behind a tenant's channel would certainly refuse. It finds nothing for a channel that does
// not exist, or cannot be opened.
func (d *Directory) Check(tenant uuid.UUID, name, to string, message json.RawMessage) invalid.FieldErrors {
	e, _ := d.Opened(tenant, name)
	if e.Channel == nil {
		return nil
	}
	return e.Channel.Check(to, message)
}

// Size returns the size of the text that a tenant's channel would send, and whether it sends text messages.
func (d *Directory) Size(tenant uuid.UUID, name string, message json.RawMessage) (size sms.Size, is bool) {
	e, _ := d.Opened(tenant, name)
	return e.Size(message)
}

// Problem returns why a tenant's own channel sends nothing, and the time of its last change. Without a problem, the text is empty.
func (d *Directory) Problem(tenant uuid.UUID, name string) (text string, since time.Time) {
	c, err := d.of(tenant, 0)
	if err != nil {
		return "", since
	}
	if mine := c.entries[name]; mine.err != nil {
		return mine.err.Error(), mine.since
	}
	return "", since
}
