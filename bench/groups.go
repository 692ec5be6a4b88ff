package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// groupMetric matches what the services tell about the calls that they work on
// together.
var groupMetric = regexp.MustCompile(`(?m)^sendquota_group_size_(sum|count)\{kind="(\w+)"\} (\S+)$`)

// groups asks a service how many calls shared a transaction or a pipeline, in
// the mean.
func (l *lab) groups(addr string) string {
	var kinds []string
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, m := range groupMetric.FindAllStringSubmatch(get(l, "http://"+addr+"/metrics"), -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		l.check(err)
		if m[1] == "sum" {
			sums[m[2]] = value
			kinds = append(kinds, m[2])
		} else {
			counts[m[2]] = value
		}
	}
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%s %.1f", kind, sums[kind]/counts[kind]))
	}
	return strings.Join(parts, ", ")
}
