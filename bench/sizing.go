package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The assumptions of a plan. docs/scale.md explains how to plan with other numbers.
const (
	peak     = 10   // times the mean of the day, in its busiest second
	busy     = 0.6  // of the processors, in that second
	keptDays = 30   // retention of pushes and attempts
	cores    = 32   // of one Postgres
	walPerS  = 250  // MB of write-ahead log a second that one Postgres can write and send to its standby
	diskTB   = 10.0 // of one Postgres
)

// sizing is the hardware for a number of pushes a day.
type sizing struct {
	Millions                     float64
	Mean, Peak                   float64 // pushes a second
	API, Worker, Postgres, Redis float64 // processors at the peak
	WAL                          float64 // MB a second at the peak, right behind a checkpoint
	Day, Kept                    float64 // GB of disk for a day, TB for all days
	Memory                       float64 // GB of Redis
	Databases                    float64
}

// For returns the hardware for a number of million pushes a day.
func (one life) For(millions float64) sizing {
	z := sizing{Millions: millions, Mean: millions * 1e6 / 86_400}
	z.Peak = peak * z.Mean
	processors := func(micros float64) float64 { return z.Peak * micros / 1e6 / busy }
	z.API, z.Worker, z.Postgres, z.Redis = processors(one.API), processors(one.Worker), processors(one.Postgres), processors(one.Redis)
	z.WAL = z.Peak * (one.WAL + one.Images) / 1e6
	z.Day = millions * 1e6 * one.Disk() / 1e9
	z.Kept = z.Day * keptDays / 1e3
	z.Memory = z.Peak * (10 * time.Minute).Seconds() * one.Memory / 1e9
	z.Databases = math.Ceil(max(z.Postgres/cores, z.WAL/walPerS, z.Kept/diskTB))
	return z
}

// Disk returns the bytes of disk per push.
func (one life) Disk() float64 { return one.Heap + one.Indexes + one.Sends }

// Assumed describes the assumptions of the plans.
func (life) Assumed() string {
	return fmt.Sprintf("a peak of %d times the mean, processors that are busy for %.0f %% then, pushes and attempts that are kept for %d days each (less than by default), and servers for Postgres with %d cores, %d MB of log a second and %.0f TB of disk",
		peak, 100*busy, keptDays, cores, walPerS, diskTB)
}

// Plans are the rows of the table.
func (one life) Plans() []sizing { return []sizing{one.For(1), one.For(100), one.For(1000)} }

// String is a row of the table.
func (z sizing) String() string {
	var b strings.Builder
	for _, value := range []float64{z.Millions, z.Mean, z.Peak, z.API, z.Worker, z.Postgres, z.Redis, z.WAL, z.Day, z.Kept, z.Memory, z.Databases} {
		fmt.Fprintf(&b, "| %s ", significant(value))
	}
	return b.String() + "|"
}

// significant writes a number with two digits that count, or with all of them before the point.
func significant(n float64) string {
	switch {
	case n >= 10 || n == math.Trunc(n):
		return count(n)
	case n >= 1:
		return fmt.Sprintf("%.1f", n)
	case n >= 0.01:
		return fmt.Sprintf("%.2f", n)
	default:
		return fmt.Sprintf("%.4f", n)
	}
}
