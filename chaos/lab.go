package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store"
)

// lab is where everything happens: the programs, the servers that the parts
// share, and the report.
type lab struct {
	options
	report   *report
	dir      string // of this run
	self     string // path of this program
	programs string // folder with api, worker and sendquota
	stack    *devstack.Stack
	template string // name of a migrated database

	databases, indexes atomic.Int64
}

func openLab(ctx context.Context, o options) (*lab, error) {
	l := &lab{options: o, report: newReport(o)}
	var err error
	if l.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "sendquota-chaos-"); err != nil {
		return nil, err
	}
	if l.programs, err = l.build(ctx); err != nil {
		return nil, errors.Join(err, l.close(false))
	}
	if l.stack, err = devstack.Start(ctx, devstack.Config{OwnProcess: true, Progress: os.Stderr}); err != nil {
		return nil, errors.Join(err, l.close(false))
	}
	l.template = "template_chaos"
	if err := l.makeTemplate(ctx); err != nil {
		return nil, errors.Join(err, l.close(false))
	}
	return l, nil
}

// close stops the servers. What a failed run left behind is kept.
func (l *lab) close(failed bool) error {
	var err error
	if l.stack != nil {
		err = l.stack.Close()
	}
	if !failed {
		return errors.Join(err, os.RemoveAll(l.dir))
	}
	kept := filepath.Join(l.keep, fmt.Sprintf("seed-%d", l.seed))
	_ = os.RemoveAll(kept)
	_ = os.RemoveAll(filepath.Join(l.dir, "bin"))
	if copyErr := os.CopyFS(kept, os.DirFS(l.dir)); copyErr != nil {
		return errors.Join(err, copyErr)
	}
	say("histories, journals and logs are in %s", kept)
	return errors.Join(err, os.RemoveAll(l.dir))
}

func (l *lab) makeTemplate(ctx context.Context) error {
	if err := l.execute(ctx, "CREATE DATABASE "+l.template); err != nil {
		return err
	}
	u, err := withPath(l.stack.DatabaseURL, l.template)
	if err != nil {
		return err
	}
	_, err = store.Migrate(ctx, u, store.MigrateConfig{})
	return err
}

// newDatabase makes a migrated database and returns its URL.
func (l *lab) newDatabase(ctx context.Context) (string, error) {
	name := fmt.Sprintf("chaos_%d", l.databases.Add(1))
	if err := l.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE "+l.template); err != nil {
		return "", err
	}
	return withPath(l.stack.DatabaseURL, name)
}

// newIndex returns the URL of an empty Redis index.
func (l *lab) newIndex() (string, error) {
	return withPath(l.stack.RedisURL, fmt.Sprint(l.indexes.Add(1)))
}

func (l *lab) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, l.stack.DatabaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func withPath(text, path string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", err
	}
	u.Path = "/" + path
	return u.String(), nil
}
