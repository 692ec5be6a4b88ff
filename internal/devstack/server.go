package devstack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// errNotOurs is returned when a process is to be killed, paused or restarted
// that this package did not start.
var errNotOurs = errors.New("the server is not a child process of ours")

// Server is one service that answers at URL. If it is a child process of
// ours, a test may also kill, pause and restart it. Its methods may be called
// concurrently.
type Server struct {
	Name string // "postgres" or "redis"
	URL  string

	mu     sync.Mutex
	launch func(ctx context.Context) (*process.Process, error) // nil when not ours
	child  *process.Process
	// release gives back what the server used, once its process is gone.
	release func() error
}

// Private reports whether the server is our own child process, so that every database and every index in it is ours.
func (s *Server) Private() bool { return s.launch != nil }

// Pid is the process id of the child, or 0 if it is not ours or not running.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil || !s.child.Alive() {
		return 0
	}
	return s.child.Pid()
}

// Kill ends the child with SIGKILL, as a crash would, and waits until it is gone. After Restart, Postgres still has all
// acknowledged writes. Redis is empty or, if it is durable, lacks at most the last second.
func (s *Server) Kill() error {
	return s.withChild("kill", (*process.Process).Kill)
}

// Pause freezes the child and its own children with SIGSTOP: connections stay
// open and nothing answers.
func (s *Server) Pause() error {
	return s.withChild("pause", (*process.Process).Freeze)
}

// Resume ends a Pause.
func (s *Server) Resume() error {
	return s.withChild("resume", (*process.Process).Thaw)
}

func (s *Server) withChild(verb string, do func(*process.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.child == nil {
		return fmt.Errorf("%s %s: %w", verb, s.Name, errNotOurs)
	}
	if err := do(s.child); err != nil {
		return fmt.Errorf("%s %s: %w", verb, s.Name, err)
	}
	return nil
}

// Restart stops the child in good order, unless it is dead already, and
// starts it again on the same port with the same data. It returns when the
// server answers.
func (s *Server) Restart(ctx context.Context) error {
	return s.withChild("restart", func(c *process.Process) error {
		if err := stop(c); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		for {
			next, err := s.launch(ctx)
			if err == nil {
				s.child = next
				return nil
			}
			if !stillInUse(err) {
				return err
			}
			// The remaining children of a killed Postgres take a moment to die.
			select {
			case <-ctx.Done():
				return errors.Join(err, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// Close stops the child in good order and removes throw-away data. It leaves a
// server that is not ours alone. A second call does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.child != nil {
		err = stop(s.child)
	}
	if s.release != nil {
		err = errors.Join(err, s.release())
	}
	s.child, s.release = nil, nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.Name, err)
	}
	return nil
}

// stop ends a child in good order, unless it is dead already.
func stop(child *process.Process) error {
	if !child.Alive() {
		return nil
	}
	return child.Stop(stopTimeout)
}
