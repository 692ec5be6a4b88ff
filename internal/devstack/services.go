package devstack

import (
	"slices"
	"strings"
)

// services are the variables that name the servers of services.
var services = []string{"DATABASE_URL", "REDIS_URL"}

// WithoutServices returns an environment without DATABASE_URL and REDIS_URL, and lists which of the two were set. Development
// and tests leave them out: in a shell of production they name its servers.
func WithoutServices(environ []string) (rest, left []string) { return Without(environ, services...) }

// Without returns an environment without some variables, and lists which of them were set.
func Without(environ []string, names ...string) (rest, left []string) {
	rest = slices.Clone(environ)
	for _, name := range names {
		rest = slices.DeleteFunc(rest, func(entry string) bool {
			value, is := strings.CutPrefix(entry, name+"=")
			if is && value != "" && !slices.Contains(left, name) {
				left = append(left, name)
			}
			return is
		})
	}
	return rest, left
}
