package testenv

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program calls f as [Run] does, for the main function of a program such as bench
// and chaos. The context ends with SIGINT and SIGTERM. After an error the process
// ends with the exit status 1.
func Program(name string, f func(t T)) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := Run(ctx, f); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// ParseFlags parses the command line of a program that has parts. The flag -only selects some of them; ParseFlags
// returns the names of the parts to run.
func ParseFlags(parts []string) (chosen []string, err error) {
	only := flag.String("only", "", "run only these, with commas: "+strings.Join(parts, ","))
	flag.Parse()
	if flag.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *only == "" {
		return parts, nil
	}
	chosen = strings.Split(*only, ",")
	for _, name := range chosen {
		if !slices.Contains(parts, name) {
			return nil, fmt.Errorf("-only %s: there are %s", name, strings.Join(parts, ", "))
		}
	}
	return chosen, nil
}

// Say writes a progress line with the time of day to stderr.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// Quantile returns the value below which the share q lies: q 0.5 is the median.
// Of an even number of values, it is the lower one of the middle; of none, 0.
func Quantile[N float64 | time.Duration](values []N, q float64) N {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}

// Buffer collects the output of a program under test, such as its log, from any goroutine. The zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write never fails.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns the complete output until now.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
