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
