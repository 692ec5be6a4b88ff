package httpapi

import (
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/zone"
)

// line reads a line, and stores what was read when that is enough.
func (x *recipientImport) line() error {
	var (
		d     description
		found fieldErrors
	)
	text, cells, number, err := x.record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	switch {
	case len(found.list) > 0:
	case x.csv != nil:
		x.csv.line(cells, &d, &found)
	default:
		readImported(text, &d, &found)
	}
	switch {
	case len(x.faults) < mostFaults:
		faults := x.svc.CheckDescription(d.Description)
		for i := range faults {
			faults[i].Field = x.named(faults[i].Field)
		}
		addFaults(faults, &found)
	case d.TimeZone != "" && !zone.Known(d.TimeZone) || len(x.svc.CheckDescription(withoutZone(d.Description))) > 0: // nobody is told which zone is the nearest
		found.add("", "is invalid", nil)
	}
	if len(found.list) > 0 {
		x.reject(number, text, found)
		return nil
	}
	return x.add(d.Description, len(text))
}

// named is how a line names a member of a description: by its column, if it is one of CSV.
func (x *recipientImport) named(member string) string {
	if x.csv == nil {
		return member
	}
	return columnOf(member)
}

func withoutZone(d booking.Description) booking.Description {
	d.TimeZone = ""
	return d
}

// readImported reads a line of NDJSON.
func readImported(text []byte, d *description, found *fieldErrors) {
	readAgain(text, func(r *reader) {
		importFields.read(r, d, found)
		if r.end(); r.err != nil {
			found.add("", r.err.Error(), nil)
		}
	})
	d.Keep = booking.AllMembers
	readAgain(text, func(r *reader) {
		if r.peek() != '{' {
			return
		}
		for name := range r.members {
			d.Keep &^= memberOf[string(name)]
			r.value()
		}
	})
}
