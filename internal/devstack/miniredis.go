package devstack

import (
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// startMiniredis runs a stand-in for Redis inside this process. Its clock for
// expiry stands still unless it is moved, so it is moved once a second.
func (c Config) startMiniredis() (*Server, error) {
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	c.log.Printf("redis: WARNING: no Redis found; using miniredis inside this process. It is slow and forgets everything at the end. Install redis-server for anything but a first look.")
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				mini.FastForward(time.Second)
			case <-quit:
				return
			}
		}
	}()
	return &Server{Name: "redis", URL: "redis://" + mini.Addr() + "/0", release: func() error {
		close(quit)
		<-done
		mini.Close()
		return nil
	}}, nil
}
