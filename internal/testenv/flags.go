package testenv

import (
	"flag"
	"strconv"
	"testing"
)

// Checks sets the number of rapid's checks per property under -short, with all of their steps. By default rapid makes a
// fifth of a hundred, with half of their steps, and many properties need to see more than that. Call it in TestMain.
func Checks(n int) {
	flag.Parse()
	if testing.Short() {
		_ = flag.Set("rapid.checks", strconv.Itoa(5*n)) // the flag does not exist in a test binary without properties
		_ = flag.Set("rapid.steps", "60")
	}
}

// Enough repeats checks of a property until the random draws have covered enough, up to fifty times.
func Enough(enough func() bool, checks func()) {
	for n := 0; n == 0 || n < 50 && !enough(); n++ {
		checks()
	}
}

// Overlap sets how many parallel tests run at a time, unless -parallel is given. Tests that mostly wait leave the
// processors to others. Call it in TestMain.
func Overlap(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}
