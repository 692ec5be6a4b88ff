package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"
)

// report is what was found out.
type report struct {
	measuring string // name of the running measurement

	Command, Machine, Go, Postgres, Redis, Date string
	Rounds                                      int
	Round                                       time.Duration

	rows     []row
	costs    []cost
	stranger float64 // the largest share that strangers had of the processors in a round
	profiles []profile
	notes    []string
	faults   []string
}

// row is one line of the table.
type row struct {
	measurement                           string
	name, ours, theirs, ratio, wanted, ok string
}

// cost is what a push took of the processors, by kind of process.
type cost struct {
	measurement, system string
	pushes              int
	cpu                 usage
}

// profile is the upper end of a CPU profile.
type profile struct{ measurement, program, top string }

func newReport(l *lab) *report {
	r := &report{
		Command: "make bench", Machine: machine(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly),
		Postgres: l.postgresVersion(), Redis: l.redisInfo("server", "redis_version"), Rounds: l.rounds, Round: l.round,
	}
	if l.short || len(l.only) > 0 || l.profile != "" {
		r.Command = "bin/bench " + strings.Join(os.Args[1:], " ")
	}
	return r
}

// machine names the processor, where Linux tells it.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores (%s), %s", runtime.NumCPU(), model, runtime.GOOS)
}

func (r *report) add(one row) {
	r.rows = append(r.rows, one)
	say("  %s: %s against %s", one.name, one.ours, one.theirs)
}

// compare adds a comparison in rounds. wanted is the least ratio; 0: any.
func (r *report) compare(name string, rounds pairs, unit string, wanted float64) {
	ratio, _, _ := rounds.ratios()
	wants, ok := fmt.Sprintf("≥ %.1f", wanted), yes(ratio >= wanted)
	if wanted == 0 {
		wants, ok = "—", "—"
	}
	show := func(speed float64) string { return count(speed) + " " + unit }
	r.addRatio(name, rounds, math.Floor, show, wants, ok) // 1.296 is not 1.3
}

// compareTimes adds a comparison of times in rounds. wanted is the highest ratio.
func (r *report) compareTimes(name string, rounds pairs, wanted float64) {
	ratio, _, _ := rounds.ratios()
	show := func(took float64) string { return micro(time.Duration(took)) }
	r.addRatio(name, rounds, math.Ceil, show, fmt.Sprintf("≤ %.1f", wanted), yes(ratio <= wanted)) // 1.304 is not 1.3
}

func (r *report) addRatio(name string, rounds pairs, round func(float64) float64, show func(float64) string, wanted, ok string) {
	median, least, most := rounds.ratios()
	ratio := fmt.Sprintf("%.2f (%.2f..%.2f)", round(median*100)/100, least, most)
	r.add(row{measurement: r.measuring, name: name, ours: show(rounds.ours()), theirs: show(rounds.theirs()), ratio: ratio, wanted: wanted, ok: ok})
	say("    ratio %s, wanted %s", ratio, wanted)
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// gathered notes how many calls a program did together.
func (r *report) gathered(program, groups string) {
	r.note("Calls that the %s did together during %s, in the mean: %s.", program, r.measuring, groups)
	say("    calls done together by the %s: %s", program, groups)
}

// disturbed notes which share of the processors strangers had in a round.
func (r *report) disturbed(share float64) {
	if share > 0.1 {
		say("    strangers used %.0f %% of the processors", 100*share)
	}
	r.stranger = max(r.stranger, share)
}

// fault notes that something was not as promised.
func (r *report) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
	say("  WRONG: "+format, args...)
}

// inexact fails if anything was not as promised.
func (r *report) inexact() error {
	if len(r.faults) == 0 {
		return nil
	}
	return errors.New("not exact:\n" + strings.Join(r.faults, "\n"))
}

// used notes what a system's rounds took of the processors.
func (r *report) used(system string, pushes int, cpu usage) {
	c := cost{r.measuring, system, pushes, cpu}
	r.costs = append(r.costs, c)
	say("    CPU µs per push, %s: %s", system, c)
}

// String lists what used CPU time, the most first.
func (c cost) String() string {
	var parts []string
	for _, kind := range slices.SortedFunc(maps.Keys(c.cpu), func(a, b string) int {
		return cmp.Or(cmp.Compare(c.cpu[b], c.cpu[a]), strings.Compare(a, b))
	}) {
		if c.micros(kind) >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f", kind, c.micros(kind)))
		}
	}
	return strings.Join(parts, ", ")
}

// micros is the CPU time per push.
func (c cost) micros(kind string) float64 { return c.cpu[kind] * 1e6 / float64(c.pushes) }

func (r *report) fellShort(measurement string) bool {
	return slices.ContainsFunc(r.rows, func(one row) bool { return one.measurement == measurement && one.ok == yes(false) })
}

var page = template.Must(template.New("report").Parse(`# Benchmarks

Made by ` + "`{{.Command}}`" + ` on {{.Date}}: {{.Machine}}, {{.Go}}, Postgres {{.Postgres}}, Redis {{.Redis}}. Load, provider, Postgres (fsync on),
Redis (append-only file, every second) and the systems under test share the machine, each in processes of its own. Only the ratios mean
something elsewhere. Comparisons take turns, {{.Rounds}} rounds each ({{.Round}} where the time is fixed); a ratio is the median of the rounds' ratios, with the least
and the most.

The *naive service* reads the recipient's ZSET around the send time, compares in the caller, then ZADD, one INSERT, one asynq Enqueue with
ProcessAt; its worker posts to the provider, then one INSERT and one UPDATE. It is not exact. The *no-op worker* is asynq with a handler that
returns nil. All workers have a concurrency of 256; the naive and
the no-op worker look for tasks every 100 ms, sendquota's every 50 ms.

| measurement | sendquota | baseline | ratio (min..max) | wanted | ok |
|---|---|---|---|---|---|
`))

// write writes the report as Markdown.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	if err := page.Execute(&b, r); err != nil {
		return err
	}
	for _, one := range r.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", one.name, one.ours, one.theirs, one.ratio, one.wanted, one.ok)
	}
	b.WriteString("\n")
	for _, f := range r.faults {
		fmt.Fprintf(&b, "- **Wrong**: %s\n", f)
	}
	for _, n := range r.notes {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	if r.stranger > 0.1 {
		fmt.Fprintf(&b, "- In one round at least, programs that have nothing to do with this used %.0f %% of the processors.\n", 100*r.stranger)
	}
	r.writeCosts(&b)
	r.writeShortfalls(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) writeCosts(b *strings.Builder) {
	if len(r.costs) == 0 {
		return
	}
	b.WriteString("\n## Where the processors' time goes\n\n" +
		"CPU microseconds per push, by process. \"load\" is the load generator, \"kernel\" interrupts and the kernel's own threads, \"strangers\" whatever else ran on the machine.\n\n" +
		"| measurement | system | CPU µs per push |\n|---|---|---|\n")
	for _, c := range r.costs {
		fmt.Fprintf(b, "| %s | %s | %s |\n", c.measurement, c.system, c)
	}
}

func (r *report) writeShortfalls(b *strings.Builder) {
	short := slices.Collect(func(yield func(string) bool) {
		for _, one := range r.rows {
			if one.ok == yes(false) && !yield(fmt.Sprintf("%s: %s, wanted %s.", one.name, strings.Join(strings.Fields(one.ratio), " "), one.wanted)) {
				return
			}
		}
	})
	if len(short) == 0 {
		return
	}
	b.WriteString("\n## What falls short\n\n")
	for _, s := range short {
		fmt.Fprintf(b, "- %s\n", s)
	}
	for _, p := range r.profiles {
		fmt.Fprintf(b, "\nProfile of the %s during %s (`go tool pprof -top -cum`):\n\n```\n%s\n```\n", p.program, p.measurement, p.top)
	}
}
