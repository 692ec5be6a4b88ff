package testenv

import (
	"flag"
	"strconv"
)

// Overlap has so many parallel tests run at a time, as those that mostly wait leave the processors to others, unless
// -parallel says how many. A TestMain calls it.
func Overlap(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}
