package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// start runs a program. Its kind says what the CPU time is booked on.
func (l *lab) start(kind string, env []string, path string, args ...string) (*process.Process, error) {
	l.started++
	p, err := process.Start(process.Command{Name: kind, Path: path, Args: args, Env: env, Log: filepath.Join(l.dir, fmt.Sprintf("%d-%s.log", l.started, kind))})
	if err != nil {
		return nil, err
	}
	l.running = append(l.running, p)
	return p, nil
}

// stop ends a process in good order.
func (l *lab) stop(p *process.Process) error {
	l.running = slices.DeleteFunc(l.running, func(r *process.Process) bool { return r == p })
	return p.Stop(20 * time.Second)
}

// stopAll ends all processes, the youngest first.
func (l *lab) stopAll() error {
	var err error
	for len(l.running) > 0 {
		err = errors.Join(err, l.stop(l.running[len(l.running)-1]))
	}
	return err
}
