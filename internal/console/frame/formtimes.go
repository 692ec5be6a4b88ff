package frame

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// TypedIn is the zone of the times among the values of a form: the one that the form named when it was drawn. Without one, as in a link,
// it is the zone that the page shows.
func (f *Form) TypedIn(values url.Values) *time.Location {
	if in := LoadZone(values.Get(ZoneField)); in != nil {
		return in
	}
	return f.Zones.Shown()
}

// SentZone is the zone of the times of the form that was sent: of what [form.Value] returns.
func (f *Form) SentZone() *time.Location {
	if f.Request.PostForm != nil {
		return f.TypedIn(f.Request.PostForm)
	}
	return f.TypedIn(f.Request.URL.Query())
}

// FieldZone returns the zone of the times in the fields of this page: the zone that the page shows, or the zone of the typed times
// if the fields show them as typed.
func (f *Form) FieldZone() *time.Location {
	if f.Request.PostForm != nil || f.Again {
		return f.SentZone()
	}
	for _, name := range []string{"at", "from", "until"} {
		at, err := f.ReadLocal(f.Value(name))
		if err == nil && !exactTime(f.Value(name)) && !f.fits(at, f.Zones.Shown()) {
			return f.SentZone()
		}
	}
	return f.Zones.Shown()
}

// fits reports whether a field, which shows whole seconds, can show a time in a zone. A local time that occurs twice is read as one of both.
func (f *Form) fits(at time.Time, in *time.Location) bool {
	again, err := f.ReadTime(LocalIn(at, in), in)
	return err == nil && again.Equal(at.Truncate(time.Second))
}

// exactTime reports whether a time is written with its offset, so that no zone is needed to read it.
func exactTime(written string) bool {
	_, err := time.Parse(time.RFC3339Nano, written)
	return err == nil
}

// TimeValue returns the value of a time field of a filter, in the zone of FieldZone.
func (f *Form) TimeValue(name string) string {
	written, in := f.Value(name), f.FieldZone()
	at, err := f.ReadLocal(written)
	if err != nil || !f.fits(at, in) || !exactTime(written) && in.String() == f.SentZone().String() {
		return written
	}
	return LocalIn(at, in)
}

// LocalLayouts lists the formats of a datetime-local field in browsers.
var LocalLayouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// ReadLocal reads a time of the form that was sent.
func (f *Form) ReadLocal(value string) (time.Time, error) { return f.ReadTime(value, f.SentZone()) }

// ReadTime reads the value of a datetime-local field in a zone. A time that a clock change leaves out is an error.
func (f *Form) ReadTime(value string, in *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return t, nil
	}
	for _, layout := range LocalLayouts {
		t, err := time.ParseInLocation(layout, value, in)
		if err != nil {
			continue
		}
		if t.Format(layout) != value && t.Format("2006-01-02T15:04:05") != value {
			return t, fmt.Errorf("%s does not exist in %s: clocks go forward over it", value, in)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time. Write it as 2006-01-02T15:04", value)
}

// Local returns a time as the value of a datetime-local field of this page.
func (f *Form) Local(t time.Time) string { return LocalIn(t, f.FieldZone()) }

func LocalIn(t time.Time, in *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(in).Format("2006-01-02T15:04:05")
}

// FormTime reads a send time of a form: the exact moment, which is hidden, as long as the field still shows it. So a time that the
// clocks show twice is the one that was meant.
func (f *Form) FormTime(name string) (time.Time, error) {
	written := f.Field(name)
	if exact, err := time.Parse(time.RFC3339Nano, f.Field(name+"_exact")); err == nil && Unchanged(written, f.Local(exact)) {
		return exact, nil
	}
	return f.ReadLocal(written)
}

// Unchanged reports whether a time field still has the value that it was drawn with. Browsers omit zero seconds.
func Unchanged(written, given string) bool {
	return written == given || written == strings.TrimSuffix(given, ":00")
}

// TakeNextFree puts the next free time into the time field if the user chose it. The form then checks the time instead of scheduling.
func (f *Form) TakeNextFree(name string) {
	at, err := time.Parse(time.RFC3339Nano, f.Field("next_free"))
	if err != nil {
		return
	}
	f.Request.PostForm.Set(name, f.Local(at))
	f.Request.PostForm.Set(name+"_exact", RFC3339(at))
	f.Request.PostForm.Set("do", "check")
}
