package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// usage is CPU time in seconds by kind of process: "api", "postgres", "load"
// (this process) and so on, "kernel" (interrupts and the kernel's own threads)
// and "strangers".
type usage map[string]float64

const strangers = "strangers"

// ticks is the unit of /proc on Linux: 100 a second on all its architectures.
const ticks = 100

// cpu reads how much CPU time everything has used so far. Where there is no
// /proc it knows nothing.
func (l *lab) cpu() usage {
	u := usage{"load": cpuOf(os.Getpid(), false)}
	for _, p := range l.running {
		u[p.Name] += cpuOf(p.Pid(), false)
	}
	u["redis"] = cpuOf(l.servers.RedisServer(l).Pid(), false)
	postgres := l.servers.PostgresServer(l).Pid()
	u["postgres"] = cpuOf(postgres, true)
	backends, _ := process.Children(postgres)
	for _, child := range backends {
		u["postgres"] += cpuOf(child, false)
	}
	processes, interrupts := machineCPU()
	for _, seconds := range u {
		processes -= seconds
	}
	threads := kernelThreads()
	u["kernel"], u[strangers] = threads+interrupts, processes-threads
	return u
}

// since is what was used between before and u.
func (u usage) since(before usage) usage {
	d := usage{}
	for kind, seconds := range u {
		d[kind] = seconds - before[kind]
	}
	return d
}

// plus is what was used in both of two spans of time.
func (u usage) plus(other usage) usage {
	sum := usage{}
	for _, part := range []usage{u, other} {
		for kind, seconds := range part {
			sum[kind] += seconds
		}
	}
	return sum
}

// cpuOf returns the CPU time of a process, with that of its dead children if
// asked for.
func cpuOf(pid int, children bool) float64 {
	fields := statOf(strconv.Itoa(pid))
	switch {
	case fields == nil:
		return 0
	case children:
		return sumTicks(fields[11:15]) // utime, stime, cutime, cstime
	}
	return sumTicks(fields[11:13])
}

// statOf returns what /proc tells of a process after its name, or nil.
func statOf(pid string) []string {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name stands in brackets
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return nil
	}
	return fields
}

// machineCPU returns the CPU time of all processes, dead and alive, and that
// of interrupts.
func machineCPU() (processes, interrupts float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return 0, 0
	}
	// user, nice, system; then idle and iowait; then irq, softirq.
	return sumTicks(fields[1:4]), sumTicks(fields[6:8])
}

// kernelThreads returns the CPU time of the children of kthreadd, process 2.
func kernelThreads() float64 {
	sum := 0.0
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		fields := statOf(filepath.Base(path))
		if fields != nil && fields[1] == "2" {
			sum += sumTicks(fields[11:13])
		}
	}
	return sum
}

func sumTicks(fields []string) float64 {
	sum := 0.0
	for _, f := range fields {
		n, _ := strconv.ParseFloat(f, 64)
		sum += n
	}
	return sum / ticks
}

// share is which part of all processors somebody used for a while.
func share(seconds float64, d time.Duration) float64 {
	return seconds / d.Seconds() / float64(runtime.NumCPU())
}

// settle prepares a round: what earlier ones have left behind is written out,
// and strangers who keep the machine busy are given some time to end.
func (l *lab) settle() {
	l.checkpoint()
	const look = 300 * time.Millisecond
	for ; l.patience > 0; l.patience -= look {
		before := l.cpu()
		testenv.Sleep(l, look)
		if share(l.cpu().since(before)[strangers], look) < 0.1 {
			return
		}
	}
}
