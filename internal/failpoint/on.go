//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var planned = parse(os.Getenv("FAILPOINT"))

// fault is a signal at the n-th arrival at a point.
type fault struct {
	signal   syscall.Signal
	point    Point
	arrival  int64
	arrivals atomic.Int64 // number of arrivals at the point
}

// parse reads kill@POINT:N or stop@POINT:N. The empty text plans nothing.
func parse(text string) *fault {
	if text == "" {
		return &fault{}
	}
	how, where, _ := strings.Cut(text, "@")
	point, number, _ := strings.Cut(where, ":")
	arrival, err := strconv.ParseInt(number, 10, 64)
	signal, known := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP}[how]
	if err != nil || !known {
		panic(fmt.Sprintf("FAILPOINT=%s is not kill@POINT:N or stop@POINT:N", text))
	}
	return &fault{signal: signal, point: Point(point), arrival: arrival}
}

// Hit marks a point, and carries out the fault that is planned for it.
func Hit(p Point) {
	if p != planned.point || planned.arrivals.Add(1) != planned.arrival {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint: %s at %s, arrival %d\n", planned.signal, p, planned.arrival)
	_ = syscall.Kill(os.Getpid(), planned.signal)
	if planned.signal == syscall.SIGKILL {
		select {} // the signal takes a moment, and nothing may happen in it
	}
}
