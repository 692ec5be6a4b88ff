//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var (
	fault = parse(os.Getenv("FAILPOINT"))
	off   = strings.Split(os.Getenv("FAILPOINT_OFF"), ",")
)

// injection is what happens at the n-th arrival at a point.
type injection struct {
	signal   syscall.Signal
	at       Point
	arrivals int64
	seen     atomic.Int64
}

// parse reads kill@POINT:N or stop@POINT:N.
func parse(text string) *injection {
	if text == "" {
		return &injection{}
	}
	how, where, _ := strings.Cut(text, "@")
	point, number, _ := strings.Cut(where, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	signal, known := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[how]
	if err != nil || !known {
		panic(fmt.Sprintf("FAILPOINT=%s is not kill@POINT:N or stop@POINT:N", text))
	}
	return &injection{signal: signal, at: Point(point), arrivals: n}
}

// Hit marks a point, and carries out what the environment has planned for it.
func Hit(p Point) {
	if p != fault.at || fault.seen.Add(1) != fault.arrivals {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint: %s at %s, arrival %d\n", fault.signal, p, fault.arrivals)
	_ = syscall.Kill(os.Getpid(), fault.signal)
	if fault.signal == syscall.SIGKILL {
		select {} // the signal takes a moment, in which nothing may happen any more
	}
}

// Off reports whether a gate is switched off.
func Off(g Gate) bool { return slices.Contains(off, string(g)) }
