package testenv

import (
	"flag"
	"strconv"
)

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
