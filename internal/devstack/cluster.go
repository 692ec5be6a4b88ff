package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/sendquota/sendquota/internal/process"
)

// cluster is a data folder made by initdb; Postgres calls it a cluster.
type cluster struct {
	bin      string // folder of the binaries that fit the data
	data     string
	password string // empty: none is asked for
	empty    bool   // initdb has just made it, and its content is to be kept for later starts
}

// openCluster finds the data in the folder, or makes it.
func (c Config) openCluster(ctx context.Context, f *folder) (*cluster, error) {
	cl := &cluster{data: filepath.Join(f.data, "data")}
	// The server names its folder with all links resolved.
	if resolved, err := filepath.EvalSymlinks(f.data); err == nil {
		cl.data = filepath.Join(resolved, "data")
	}
	text, err := os.ReadFile(filepath.Join(cl.data, "PG_VERSION"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if cl.bin, err = c.searchPaths.postgresBin(0); err != nil {
			return nil, err
		}
		return cl, c.makeCluster(ctx, f, cl)
	case err != nil:
		return nil, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("version of the data in %s: %w", cl.data, err)
	}
	if cl.bin, err = c.searchPaths.postgresBin(major); err != nil {
		return nil, err
	}
	password, err := os.ReadFile(f.file("password"))
	if err != nil {
		return nil, fmt.Errorf("read the password of the data in %s: %w", cl.data, err)
	}
	cl.password = strings.TrimSpace(string(password))
	return cl, nil
}

// makeCluster makes the data. For a throw-away server it copies what an earlier
// start kept, if that is there.
func (c Config) makeCluster(ctx context.Context, f *folder, cl *cluster) error {
	if f.throwAway {
		cache, err := c.cachePath(f.account, cl.bin)
		if err != nil || unpackCluster(cache, cl.data, f.account) == nil {
			return err
		}
		cl.empty = true
	}
	return c.initialise(ctx, f, cl)
}

// initialise runs initdb in a side folder, which gets its name only when all
// is done: a run that dies half-way leaves nothing that looks like data.
func (c Config) initialise(ctx context.Context, f *folder, cl *cluster) error {
	side := cl.data + ".new"
	if err := errors.Join(os.RemoveAll(side), os.RemoveAll(cl.data)); err != nil {
		return err
	}
	args := []string{"-D", side, "-U", "postgres", "--encoding=UTF8", "--locale=C", "--no-instructions"}
	if f.throwAway {
		args = append(args, "--no-sync", "--auth=trust")
	} else {
		more, err := cl.newPassword(f)
		if err != nil {
			return err
		}
		defer os.Remove(passwordFile(f))
		args = append(args, more...)
	}
	initdb, err := process.Start(f.command(process.Command{Path: filepath.Join(cl.bin, "initdb"), Args: args, Orphan: syscall.SIGTERM}))
	if err != nil {
		return err
	}
	select {
	case <-initdb.Exited():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("initdb: %w", ctx.Err()), stop(initdb))
	}
	if err := initdb.Err(); err != nil {
		return fmt.Errorf("initdb failed (%w); it said:\n%s", err, initdb.LogTail())
	}
	return os.Rename(side, cl.data)
}

// newPassword makes a password, keeps it for later runs and lays it out for
// initdb, which reads it with the rights of the account.
func (cl *cluster) newPassword(f *folder) (initdbArgs []string, err error) {
	if cl.password, err = f.password(); err != nil {
		return nil, err
	}
	path := passwordFile(f)
	err = makeOwned(path, f.account, os.WriteFile(path, []byte(cl.password+"\n"), 0o600))
	return []string{"--auth=scram-sha-256", "--pwfile=" + path}, err
}

func passwordFile(f *folder) string { return filepath.Join(f.data, "initdb.password") }
