package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// groupMetric matches the services' metrics about calls that share a transaction or a pipeline.
var groupMetric = regexp.MustCompile(`(?m)^sendquota_group_size_(sum|count)\{kind="(\w+)"\} (\S+)$`)

// groups returns the mean number of calls that shared a transaction or a pipeline in a service.
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
