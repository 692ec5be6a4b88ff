package zone

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for machines without a database of zones

	"github.com/sendquota/sendquota/internal/invalid"
)

// names are the zones of Go's own database, sorted, one per line.
//
//go:embed names.txt
var names string

// known returns the names.
var known = sync.OnceValue(func() []string { return strings.Fields(names) })

// loaded caches the zones by name: reading one takes as long as about ten decisions about sends.
var loaded sync.Map

// UnknownError rejects the name of a zone that does not exist.
type UnknownError struct {
	Name    string
	Nearest string // the most similar name; "": none is similar
}

// Error names the nearest zone.
func (e *UnknownError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("there is no time zone %q; give an IANA name, such as Europe/Berlin", e.Name)
	}
	return fmt.Sprintf("there is no time zone %q; the nearest name is %s", e.Name, e.Nearest)
}

// Load returns the zone with an IANA name, such as Europe/Berlin. The name must be exact. The error is an
// [UnknownError].
func Load(name string) (*time.Location, error) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if !Known(name) {
		return nil, &UnknownError{Name: name, Nearest: nearest(name)}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("load the time zone %s: %w", name, err)
	}
	loaded.Store(name, zone)
	return zone, nil
}

// Known reports whether a zone exists. For unknown names it is faster than Load.
func Known(name string) bool {
	_, ok := slices.BinarySearch(known(), name)
	return ok
}

// nearest returns the name that is most similar to another one, or "" if none has two of three letters in common. The
// same place in another region, or without one, ranks a little lower.
func nearest(name string) (best string) {
	asked := strings.ReplaceAll(strings.ToLower(shortened(name)), " ", "_")
	least := len(asked) + 1
	closer := func(n, asked, known string, more int) {
		if d := invalid.Distance(asked, known); asked != "" && d <= len(asked)/3 && d+more < least {
			best, least = n, d+more
		}
	}
	for _, n := range known() {
		lower := strings.ToLower(n)
		closer(n, asked, lower, 0)
		closer(n, place(asked), place(lower), 1)
	}
	return best
}

// shortened bounds the part of a long name that is compared.
func shortened(name string) string { return name[:min(len(name), 64)] }

// place returns the last part of a name.
func place(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
