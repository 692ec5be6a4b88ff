package main

import (
	"cmp"
	"embed"
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

	"github.com/prometheus/procfs"

	"github.com/sendquota/sendquota/internal/testenv"
)

// report holds the results.
type report struct {
	measuring string // name of the running measurement

	Command, Machine, Go, Postgres, Redis, Date string
	Pushes                                      string // that the large system holds, where sizes are compared
	Life                                        life
	Rounds                                      int
	Round                                       time.Duration

	Rows      []row
	Costs     []cost
	Strangers float64 // the largest share that they had of the processors in a round, in percent
	Profiles  []profile
	Notes     []string
	Faults    []string
}

// row is one line of the table.
type row struct {
	measurement                           string
	Name, Ours, Theirs, Ratio, Wanted, OK string
}

// cost is the CPU time of a push, by kind of process.
type cost struct {
	Measurement, System string
	pushes              int
	cpu                 usage
}

// profile is the top of a CPU profile, or of a substitute.
type profile struct{ Measurement, Program, How, Top string }

func newReport(l *lab) *report {
	r := &report{
		Command: "make bench", Machine: machine(), Go: runtime.Version(), Date: time.Now().UTC().Format(time.DateOnly),
		Postgres: l.postgresVersion(), Redis: l.redisVersion(), Rounds: l.rounds, Round: l.round,
	}
	if l.rows > 0 {
		r.Command, r.Pushes = fmt.Sprintf("make scale ROWS=%d", l.rows), count(float64(l.rows))
	}
	if l.short || l.rows == 0 && len(l.only) < len(measurements()) || l.profile != "" {
		r.Command = "bin/bench " + strings.Join(os.Args[1:], " ")
	}
	return r
}

// machine names the processor, where Linux tells it.
func machine() string {
	model := runtime.GOARCH
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && cpus[0].ModelName != "" {
			model = cpus[0].ModelName
		}
	}
	return fmt.Sprintf("%d cores (%s), %s", runtime.NumCPU(), model, runtime.GOOS)
}

func (r *report) add(one row) {
	r.Rows = append(r.Rows, one)
	testenv.Say("  %s: %s against %s", one.Name, one.Ours, one.Theirs)
}

// compare adds a comparison in rounds. wanted is the minimum ratio; 0: any.
func (r *report) compare(name string, rounds pairs, unit string, wanted float64) {
	ratio, _, _ := rounds.ratios()
	wants, ok := fmt.Sprintf("≥ %.1f", wanted), yes(ratio >= wanted)
	if wanted == 0 {
		wants, ok = "—", "—"
	}
	show := func(speed float64) string { return count(speed) + " " + unit }
	r.addRatio(name, rounds, math.Floor, show, wants, ok) // 1.296 is not 1.3
}

// compareTimes adds a comparison of times in rounds. wanted is the maximum ratio.
func (r *report) compareTimes(name string, rounds pairs, wanted float64) {
	ratio, _, _ := rounds.ratios()
	r.addRatio(name, rounds, math.Ceil, micro, fmt.Sprintf("≤ %.1f", wanted), yes(ratio <= wanted)) // 1.304 is not 1.3
}

func (r *report) addRatio(name string, rounds pairs, round func(float64) float64, show func(float64) string, wanted, ok string) {
	median, least, most := rounds.ratios()
	ratio := fmt.Sprintf("%.2f (%.2f..%.2f)", round(median*100)/100, round(least*100)/100, round(most*100)/100)
	r.add(row{measurement: r.measuring, Name: name, Ours: show(testenv.Quantile(rounds.ours, 0.5)), Theirs: show(testenv.Quantile(rounds.theirs, 0.5)), Ratio: ratio, Wanted: wanted, OK: ok})
	testenv.Say("    ratio %s, wanted %s", ratio, wanted)
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "**no**"
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// gathered notes how many calls of a program shared a transaction or a pipeline.
func (r *report) gathered(program, groups string) {
	r.note("Calls that the %s did together during %s, in the mean: %s.", program, r.measuring, groups)
	testenv.Say("    calls done together by the %s: %s", program, groups)
}

// disturbed notes the share of the processors that other programs used in a round.
func (r *report) disturbed(share float64) {
	if share > 0.1 {
		testenv.Say("    strangers used %.0f %% of the processors", 100*share)
	}
	r.Strangers = max(r.Strangers, 100*share)
}

// fault notes an unexpected result.
func (r *report) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	testenv.Say("  WRONG: "+format, args...)
}

// inexact fails if there are unexpected results.
func (r *report) inexact() error {
	if len(r.Faults) == 0 {
		return nil
	}
	return errors.New("not exact:\n" + strings.Join(r.Faults, "\n"))
}

// used notes the processor time of a system's rounds.
func (r *report) used(system string, pushes int, cpu usage) {
	c := cost{r.measuring, system, pushes, cpu}
	r.Costs = append(r.Costs, c)
	testenv.Say("    CPU µs per push, %s: %s", system, c)
}

// String lists the consumers of CPU time, the largest first.
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

// micros returns the CPU time per push.
func (c cost) micros(kind string) float64 { return c.cpu[kind] * 1e6 / float64(c.pushes) }

// Short returns the rows that fall short of the wanted values.
func (r *report) Short() []row {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(one row) bool { return one.OK != yes(false) })
}

//go:embed report.md.tmpl scale.md.tmpl
var pages embed.FS

// write writes the report as Markdown.
func (r *report) write(w io.Writer) error {
	all, err := template.ParseFS(pages, "*.tmpl")
	if err != nil {
		return err
	}
	page := "report.md.tmpl"
	if r.Pushes != "" {
		page = "scale.md.tmpl"
	}
	return all.ExecuteTemplate(w, page, r)
}
