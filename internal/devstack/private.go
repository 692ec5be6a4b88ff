package devstack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// recipe starts one service as a child process on a given address.
type recipe struct {
	binary  string
	command func(addr string) process.Command
	ready   func(ctx context.Context, url string, pid int) error
	url     func(addr string) string
}

// private starts the service as a child process, in a folder of its own.
func (c Config) private(ctx context.Context, s service) (*Server, error) {
	f, err := c.openFolder(strings.ToLower(s.name))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	server, err := c.startPrivate(ctx, s, f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", s.name, err), f.close())
	}
	return server, nil
}

// startPrivate starts the service on a free address and keeps the address for every restart. The folder is closed with
// the server.
func (c Config) startPrivate(ctx context.Context, s service, f *folder) (*Server, error) {
	r, err := s.recipe(ctx, f)
	if err != nil {
		return nil, err
	}
	addr, child, err := r.launchAnywhere(ctx, f)
	if err != nil {
		return nil, err
	}
	c.log.Printf("%s: started %s, process %d, at %s", f.service, r.binary, child.Pid(), redacted(r.url(addr)))
	launch := func(ctx context.Context) (*process.Process, error) { return r.launch(ctx, f, addr) }
	return &Server{Name: f.service, URL: r.url(addr), launch: launch, child: child, release: f.close}, nil
}

// launchAnywhere starts the service on a free address and returns when it answers.
func (r recipe) launchAnywhere(ctx context.Context, f *folder) (addr string, child *process.Process, err error) {
	for attempt := 1; ; attempt++ {
		if addr, err = process.FreeAddr(); err != nil {
			return "", nil, err
		}
		child, err = r.launch(ctx, f, addr)
		// Another program may have taken the port between the test and the start.
		if err == nil || attempt == 10 || !stillInUse(err) {
			return addr, child, err
		}
	}
}

// launch starts the service and returns when it answers.
func (r recipe) launch(ctx context.Context, f *folder, addr string) (*process.Process, error) {
	child, err := process.Start(f.command(r.command(addr)))
	if err != nil {
		return nil, err
	}
	err = child.AwaitReady(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return r.ready(ctx, r.url(addr), child.Pid())
	})
	if err != nil {
		return nil, errors.Join(err, child.Kill())
	}
	return child, nil
}

// stillInUse recognises, in the log of a server that would not start, that
// another process has its port, its shared memory or its data.
func stillInUse(err error) bool {
	text := err.Error()
	return strings.Contains(text, "ddress already in use") ||
		strings.Contains(text, "still in use") ||
		strings.Contains(text, `"postmaster.pid" already exists`)
}
