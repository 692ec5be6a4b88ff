package app

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/sendquota/sendquota/internal/rest"
)

// heapSlack is the amount of garbage that a small heap may gather before a collection. The heap of a service is mostly
// small and short-lived: without slack it would be collected many times a second. A large heap grows to twice its size
// plus the slack.
const heapSlack = 64 << 20

// tendMemory limits the garbage collector to the container's memory, and adds the slack. It returns a function that ends
// the slack. GOGC and GOMEMLIMIT of the operator take precedence.
func tendMemory() (end func()) {
	limit, limited := containerMemory()
	slack := int64(heapSlack)
	if limited {
		slack = min(slack, limit/8)
	}
	if os.Getenv("GOGC") != "" {
		slack = 0
	}
	if limited && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit/10*9 + slack)
	}
	ballast := make([]byte, slack) // counts as heap, but is never touched, so it takes no memory
	return func() { runtime.KeepAlive(ballast) }
}

// containerMemory returns the memory limit of the container in bytes, if there is one.
func containerMemory() (bytes int64, limited bool) {
	limit, err := memlimit.FromCgroup()
	return int64(min(limit, 1<<62)), err == nil
}

// requestMemory returns the maximum number of bytes for requests and answers.
func requestMemory() int64 {
	limit, limited := containerMemory()
	if limited {
		return min(rest.DefaultMemory, limit*3/10)
	}
	return rest.DefaultMemory
}
