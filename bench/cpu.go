package main

import (
	"os"
	"runtime"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sendquota/sendquota/internal/testenv"
)

// usage is CPU time in seconds by kind of process: "api", "postgres", "load"
// (this process, and Postgres' one for its samples) and so on, "kernel" (interrupts and the kernel's own threads)
// and "strangers".
type usage map[string]float64

const strangers = "strangers"

// ticks is the unit of /proc on Linux: 100 a second on all its architectures.
const ticks = 100

// kthreadd is the parent of the kernel's own threads.
const kthreadd = 2

// cpu reads the total CPU time of all processes. Without /proc it returns zeros.
func (l *lab) cpu() usage {
	kinds := map[int]string{os.Getpid(): "load", l.servers.RedisServer(l).Pid(): "redis"}
	for _, p := range l.running {
		kinds[p.Pid()] = p.Name
	}
	postgres := l.servers.PostgresServer(l).Pid()
	u := usage{}
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil {
			continue // it has ended meanwhile
		}
		seconds, kind := stat.CPUTime(), kinds[p.PID]
		switch {
		case p.PID == l.sampler:
			kind = "load"
		case p.PID == postgres:
			kind = "postgres"
			seconds += float64(stat.CUTime+stat.CSTime) / ticks
		case stat.PPID == postgres:
			kind = "postgres"
		case stat.PPID == kthreadd:
			kind = "kernel"
		}
		if kind != "" {
			u[kind] += seconds
		}
	}
	known := 0.0
	for _, seconds := range u {
		known += seconds
	}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if machine, err := fs.Stat(); err == nil {
			all := machine.CPUTotal
			u[strangers] = all.User + all.Nice + all.System - known
			u["kernel"] += all.IRQ + all.SoftIRQ
		}
	}
	return u
}

// since returns the usage between before and u.
func (u usage) since(before usage) usage {
	d := usage{}
	for kind, seconds := range u {
		d[kind] = seconds - before[kind]
	}
	return d
}

// plus returns the sum of the usage of two periods.
func (u usage) plus(other usage) usage {
	sum := usage{}
	for _, part := range []usage{u, other} {
		for kind, seconds := range part {
			sum[kind] += seconds
		}
	}
	return sum
}

// share returns the used part of all processors in a period.
func share(seconds float64, d time.Duration) float64 {
	return seconds / d.Seconds() / float64(runtime.NumCPU())
}

// settle prepares a round: Postgres writes out the dirty pages of earlier rounds,
// and other programs that keep the machine busy get some time to end.
func (l *lab) settle() {
	l.checkpoint()
	const look = 300 * time.Millisecond
	for ; l.settleTime > 0; l.settleTime -= look {
		before := l.cpu()
		testenv.Sleep(l, look)
		if share(l.cpu().since(before)[strangers], look) < 0.1 {
			return
		}
	}
}
