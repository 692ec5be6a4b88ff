package recipients

import (
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/zone"
)

// line reads a line. It stores a portion when that is full.
func (x *recipientImport) line() error {
	var (
		d     description
		found rest.FieldErrors
	)
	text, cells, number, err := x.in.Record(&found)
	if err != nil {
		return err
	}
	bulkhead.Yield()
	switch {
	case len(found.List) > 0:
	case x.csv != nil:
		x.csv.line(cells, &d, &found)
	default:
		readImported(text, &d, &found)
	}
	switch {
	case len(x.in.Errors) < lists.MaxErrors:
		faults := x.svc.CheckDescription(x.c.Caller.Tenant, d.Description)
		for i := range faults {
			faults[i].Field = x.named(faults[i].Field)
		}
		addFaults(faults, &found)
	case d.TimeZone != "" && !zone.Known(d.TimeZone) || len(x.svc.CheckDescription(x.c.Caller.Tenant, withoutZone(d.Description))) > 0: // this error is not shown, so the nearest zone is not searched
		found.Add("", "is invalid", nil)
	}
	if len(found.List) > 0 {
		x.in.Reject(number, text, found)
		return nil
	}
	return x.add(d.Description, len(text))
}

// named returns the name of a member in a line: in CSV, the name of its column.
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
func readImported(text []byte, d *description, found *rest.FieldErrors) {
	rest.ReadAgain(text, func(r *rest.Reader) {
		importFields.Read(r, d, found)
		if r.End(); r.Err != nil {
			found.Add("", r.Err.Error(), nil)
		}
	})
	d.Keep = booking.AllMembers
	rest.ReadAgain(text, func(r *rest.Reader) {
		if r.Peek() != '{' {
			return
		}
		for name := range r.Members {
			d.Keep &^= memberOf[string(name)]
			r.Value()
		}
	})
}
