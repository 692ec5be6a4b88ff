package recurrence

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sendquota/sendquota/internal/zone"
)

// Expression is a cron expression in a zone.
type Expression struct {
	zone  *time.Location
	spec  *cron.SpecSchedule // in UTC: it works on the wall clock time of the zone
	every time.Duration      // the interval of an @every, which has no spec
	began time.Time          // the origin of the intervals
}

// MinEvery is the shortest interval of an @every.
const MinEvery = time.Minute

// maxLength is longer than any sensible expression.
const maxLength = 256

// Parse reads a cron expression: five fields, with names of months and days; or @hourly, @daily, @weekly, @monthly,
// @yearly; or @every with a duration of at least a minute, counted from began. Day of month and weekday together mean
// either. The error explains the mistake, or that the expression never occurs.
func Parse(expression string, in *time.Location, began time.Time) (*Expression, error) {
	expression = strings.TrimSpace(expression)
	switch {
	case expression == "" || len(expression) > maxLength:
		return nil, fmt.Errorf("must be a cron expression of 1 to %d characters", maxLength)
	case strings.Contains(expression, "TZ="):
		return nil, errors.New("must not name a zone: that is what time_zone is for")
	case expression[0] != '@' && len(strings.Fields(expression)) != 5:
		return nil, errors.New("must have five fields: minute, hour, day of month, month and weekday; nothing happens every second")
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	parsed, err := parser.Parse(expression)
	if err != nil || expression[0] != '@' && !wellFormed(expression) {
		return nil, errors.New("is not a cron expression" + wrongFields(parser, expression))
	}
	switch of := parsed.(type) {
	case cron.ConstantDelaySchedule:
		return everySoOften(expression, in, began)
	case *cron.SpecSchedule:
		of.Location = time.UTC
		e := &Expression{zone: in, spec: of}
		if _, ok := e.Next(began); !ok {
			return nil, errors.New("never happens")
		}
		return e, nil
	}
	return nil, errors.New("is not a cron expression")
}

// cronFields are the fields of an expression with their allowed values.
var cronFields = []struct{ name, values string }{
	{"minute", "0 to 59"}, {"hour", "0 to 23"}, {"day of month", "1 to 31"}, {"month", "1 to 12 or JAN to DEC"}, {"weekday", "0 to 6, from Sunday, or SUN to SAT"},
}

// element is an element of a list in a field. Package cron accepts more: it drops empty ones, and the rest after *-.
var element = regexp.MustCompile(`^([*?]|[0-9]+(-[0-9]+)?|[A-Za-z]+(-[A-Za-z]+)?|[0-9]+-[A-Za-z]+|[A-Za-z]+-[0-9]+)(/[0-9]+)?$`)

// wellFormed reports whether fields are lists of values, ranges and steps.
func wellFormed(fields string) bool {
	for field := range strings.FieldsSeq(fields) {
		for one := range strings.SplitSeq(field, ",") {
			if !element.MatchString(one) {
				return false
			}
		}
	}
	return true
}

// wrongFields describes which fields of an expression are invalid, with their allowed values.
func wrongFields(parser cron.Parser, expression string) (text string) {
	parts := strings.Fields(expression)
	if expression[0] == '@' {
		return "; those with an @ are @hourly, @daily, @weekly, @monthly, @yearly, and @every with a span that has units, such as @every 90m"
	}
	for i, part := range parts {
		alone := []string{"*", "*", "*", "*", "*"}
		alone[i] = part
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil || !wellFormed(part) {
			text += fmt.Sprintf("; the %s cannot be %s: it is *, or of %s, in lists such as a,b, ranges from the lower such as a-b, or steps such as */2", cronFields[i].name, part, cronFields[i].values)
		}
	}
	return text
}

// everySoOften reads an @every. The cron parser rounds a shorter interval up to a second.
func everySoOften(expression string, in *time.Location, began time.Time) (*Expression, error) {
	_, text, _ := strings.Cut(expression, " ")
	every, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || every < MinEvery || every%time.Second != 0 {
		return nil, errors.New("@every must be whole seconds, and at least a minute")
	}
	return &Expression{zone: in, every: every, began: began.Truncate(time.Second)}, nil
}

// Next returns the first occurrence after a time. It is false if there is none.
func (e *Expression) Next(after time.Time) (next time.Time, ok bool) {
	if e.every > 0 {
		if after.Before(e.began) {
			return e.began.Add(e.every), true
		}
		return e.began.Add((after.Sub(e.began)/e.every + 1) * e.every), true
	}
	local := e.firstLocal(after)
	for {
		if local = e.nextLocal(local); local.IsZero() {
			return next, ok
		}
		// The first instants of ascending local times never go back, and the later instants come after them.
		all := e.instants(local)
		if ok && !all[0].Before(next) {
			return next, true
		}
		for _, at := range all {
			if at.After(after) && (!ok || at.Before(next)) {
				next, ok = at, true
			}
		}
	}
}

// firstLocal returns a local time before all those that occur after a time. Clocks that will soon go back repeat local
// times that they have already shown.
func (e *Expression) firstLocal(after time.Time) time.Time {
	first := zone.Shown(after, e.zone)
	for at := after.In(e.zone); ; {
		_, until := at.ZoneBounds()
		if until.IsZero() || until.Sub(after) > zone.Moved {
			return first.Add(-time.Second)
		}
		if local := zone.Shown(until, e.zone); local.Before(first) {
			first = local
		}
		at = until
	}
}

// nextLocal returns the next local time that matches the fields; zero: none. Package cron searches five years ahead,
// and a leap day can be eight years away.
func (e *Expression) nextLocal(local time.Time) time.Time {
	if next := e.spec.Next(local); !next.IsZero() {
		return next
	}
	return e.spec.Next(local.AddDate(4, 0, 0))
}

// instants returns the instants of a local time.
func (e *Expression) instants(local time.Time) []time.Time {
	const anyHour = 1 << 63 // package cron sets this bit for a *
	if e.spec.Hour&anyHour != 0 {
		return zone.Instants(local, e.zone)
	}
	return []time.Time{zone.Instant(local, e.zone)}
}

// Take returns the first n occurrences after a time, or fewer if there are no more.
func (e *Expression) Take(after time.Time, n int) []time.Time {
	var all []time.Time
	for len(all) < n {
		next, ok := e.Next(after)
		if !ok {
			break
		}
		all, after = append(all, next), next
	}
	return all
}
