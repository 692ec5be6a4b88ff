package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/store"
)

type exportTenant struct {
	jsonFlag
	Name string `arg:"" help:"Name of the tenant."`
	Dir  string `arg:"" help:"A folder that does not exist yet."`
}

// Help lists the files.
func (exportTenant) Help() string {
	return `Each table has a file of NDJSON, one object a line: pushes.ndjson, sends.ndjson (the attempts), recipients.ndjson, campaigns.ndjson, campaign_recipients.ndjson, schedules.ndjson, webhooks.ndjson, policies.ndjson, users.ndjson, api_keys.ndjson, audit_log.ndjson, stats.ndjson and others. Times are UTC.

Secrets are left out: API keys, passwords, links, sessions, and the secrets of webhooks. The files name people, so only your user can read them. The folder appears when it is complete.`
}

func (c exportTenant) Validate() error {
	if c.Dir == "" {
		return errors.New("DIR must name a folder")
	}
	return nil
}

func (c exportTenant) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Name)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already; name a folder that does not", brief(c.Dir))
		}
		target := filepath.Clean(c.Dir)
		dir, err := os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".partial-")
		if err != nil {
			return err
		}
		e := &tenantFiles{dir: dir, rows: map[string]int64{}, open: map[string]*tenantFile{}}
		if err = e.write(ctx, st, tenant); err == nil {
			err = os.Rename(dir, target)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		return c.print(map[string]any{"id": tenant, "name": c.Name, "dir": c.Dir, "rows": e.rows}, "tenant %s is exported to %s\n", c.Name, c.Dir)
	})
}

// tenantFiles are the files of an export.
type tenantFiles struct {
	dir  string
	rows map[string]int64
	open map[string]*tenantFile
}

type tenantFile struct {
	*os.File
	buffer *bufio.Writer
}

// write writes all files.
func (e *tenantFiles) write(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
	err := st.ExportTenant(ctx, tenant, e.line)
	for _, f := range e.open {
		err = errors.Join(err, f.buffer.Flush(), f.Close())
	}
	return err
}

// line adds a line to the file of a table.
func (e *tenantFiles) line(table string, object []byte) error {
	f := e.open[table]
	if f == nil {
		file, err := os.OpenFile(filepath.Join(e.dir, table+".ndjson"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		f = &tenantFile{file, bufio.NewWriter(file)}
		e.open[table] = f
	}
	e.rows[table]++
	_, err := f.buffer.Write(append(object, '\n'))
	return err
}
