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

// names are the zones of Go's own database, sorted, one a line.
//
//go:embed names.txt
var names string

// known are the names.
var known = sync.OnceValue(func() []string { return strings.Fields(names) })

// loaded remembers the zones by their names: reading one takes as long as deciding about ten sends.
var loaded sync.Map

// UnknownError says that there is no zone of this name.
type UnknownError struct {
	Name    string
	Nearest string // the name that is most like it; empty: none is
}

// Error names the nearest zone.
func (e *UnknownError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("there is no time zone %q; give an IANA name, such as Europe/Berlin", e.Name)
	}
	return fmt.Sprintf("there is no time zone %q; the nearest name is %s", e.Name, e.Nearest)
}

// Load returns the zone with an IANA name, such as Europe/Berlin. The name is exact. The error is an [UnknownError].
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

// Known reports whether there is a zone of this name. It is quicker than Load about one that there is not.
func Known(name string) bool {
	_, ok := slices.BinarySearch(known(), name)
	return ok
}

// nearest returns the name that is most like another one, or nothing if that is none with two of three letters alike. A place in
// another region, or without one, is a little less like it.
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

// shortened is what is looked at of a name that is far too long.
func shortened(name string) string { return name[:min(len(name), 64)] }

// place is the last part of a name.
func place(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }
