package app

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/sendquota/sendquota/internal/httpapi"
)

// heapSlack is how much garbage a small heap may gather before it is collected. The heap of a service is mostly small
// and turns over fast: without slack it would be collected many times a second. A large heap grows to twice its size,
// and the slack.
const heapSlack = 64 << 20

// tendMemory has the garbage collector keep to the container's memory, and returns what undoes the slack. What the
// operator says by GOGC or GOMEMLIMIT stands.
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
	ballast := make([]byte, slack) // counts as heap, and is never touched, so that it takes no memory
	return func() { runtime.KeepAlive(ballast) }
}

// containerMemory is how many bytes the container may have, if that is limited.
func containerMemory() (bytes int64, limited bool) {
	limit, err := memlimit.FromCgroup()
	return int64(min(limit, 1<<62)), err == nil
}

// requestMemory is how many bytes requests and answers may take.
func requestMemory() int64 {
	limit, limited := containerMemory()
	if limited {
		return min(httpapi.DefaultMemory, limit*3/10)
	}
	return httpapi.DefaultMemory
}
