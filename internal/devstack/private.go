package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
	"time"
)

// recipe is how one service is started as a child process on a given port.
type recipe struct {
	command func(port int) command
	ready   func(ctx context.Context, ch *child, port int) error
	url     func(port int) string
}

// startPrivate starts the service on a free port and keeps that port for
// every restart. The folder is closed with the server, and if there is none.
func startPrivate(ctx context.Context, f *folder, r recipe) (*Server, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		launch := func(ctx context.Context) (*child, error) {
			ch, err := run(r.command(port))
			if err != nil {
				return nil, err
			}
			err = ch.awaitReady(ctx, func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				return r.ready(ctx, ch, port)
			})
			if err != nil {
				return nil, errors.Join(err, ch.kill())
			}
			return ch, nil
		}
		ch, err := launch(ctx)
		if err == nil {
			return &Server{Name: f.service, URL: r.url(port), launch: launch, child: ch, release: f.close}, nil
		}
		// Somebody else may have taken the port between the test and the start.
		if attempt == 10 || !stillInUse(err) {
			return nil, errors.Join(err, f.close())
		}
	}
}

// freePort finds a free loopback port below those that the system gives to
// outgoing connections. Within them, a client that keeps trying to reach a
// stopped server would in the end connect to itself, and hold the port.
func freePort() (int, error) {
	const lowest, count = 15000, 15000
	var last error
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(count))
		if err != nil {
			return 0, err
		}
		port := lowest + int(n.Int64())
		l, err := net.Listen("tcp4", address(port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
