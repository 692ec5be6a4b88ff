package testenv

import (
	"flag"
	"strconv"
	"testing"
)

// Checks has rapid make so many checks of each property under -short, with all of their steps. By itself it makes a fifth of
// the usual hundred, with half of their steps, and many properties want to have seen more than that. A TestMain calls it.
func Checks(n int) {
	flag.Parse()
	if testing.Short() {
		_ = flag.Set("rapid.checks", strconv.Itoa(5*n)) // there is no such flag where there is no property
		_ = flag.Set("rapid.steps", "60")
	}
}

// Enough makes checks of a property until random draws have shown enough, up to fifty times: a few checks show much or little.
func Enough(enough func() bool, checks func()) {
	for n := 0; n == 0 || n < 50 && !enough(); n++ {
		checks()
	}
}
