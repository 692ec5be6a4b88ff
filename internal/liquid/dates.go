package liquid

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/osteele/tuesday"
)

var (
	// wide matches a conversion with a width that no date needs.
	wide = regexp.MustCompile(`%[-_^#0:]*\d{3}`)

	slashed = regexp.MustCompile(`^(\d{1,2})/(\d{1,2})/(\d{4})\b`)

	// A number of seconds in the years 1973 to 5138. A shorter number might be a year, or a day without its dashes.
	epoch = regexp.MustCompile(`^\d{9,11}$`)
)

// dateSteps is the cost of formatting a date, mostly the padding of a wide conversion.
const dateSteps = 10

// The supported days and times of day. A time may follow each day, and a zone each time.
var (
	days  = []string{"2006-01-02", "2006/01/02", "2.1.2006", "January 2, 2006", "Jan 2, 2006", "January 2 2006", "Jan 2 2006", "2 January 2006", "2 Jan 2006", "Mon, 2 Jan 2006", "Mon, Jan 2, 2006", "Monday, January 2, 2006"}
	times = []string{"", "T15:04:05", "T15:04", " 15:04:05", " 15:04", " 3:04 PM", " 3:04PM"}
	zones = []string{"", "Z07:00", "-0700", " -0700", " -07:00", " MST"}
)

// layouts are all combinations.
var layouts = func() (all []string) {
	for _, day := range days {
		for _, clock := range times {
			for _, zone := range zones {
				if clock != "" || zone == "" {
					all = append(all, day+clock+zone)
				}
			}
		}
	}
	return append(all, time.ANSIC, time.UnixDate, time.RubyDate)
}()

const dateForms = "a date is written 2026-12-24, 2026-12-24T20:00:00, 2026-12-24T20:00:00+01:00, 24.12.2026, 'December 24, 2026', a number of seconds since 1970, 'now', or 'today'"

var (
	errNoDate   = errors.New("it is no date: " + dateForms)
	errNoZone   = errors.New("its zone is not known: write its offset, as in 2026-12-24T20:00:00-05:00")
	errTwoDates = errors.New("it may be two dates, as day and month may be either: " + dateForms)
)

// date formats a date by strftime. Nil stays nil.
func date(m *machine, v any, args []any) (any, error) {
	format := textOf(args[0])
	if text := textOf(v); format == "" || kindOf(v) != 'n' && strings.Trim(text, spaces) == "" {
		return v, nil
	}
	if wide.MatchString(format) || len(format) > 1000 {
		return nil, errors.New("the format is too wide")
	}
	if err := m.step(dateSteps * (len(layouts)/8 + strings.Count(format, "%"))); err != nil {
		return nil, err
	}
	at, err := m.dateOf(v)
	if err != nil {
		return nil, err
	}
	return tuesday.Strftime(format, at)
}

// dateOf reads a date. A day or a time without a zone is in the recipient's zone.
func (m *machine) dateOf(v any) (time.Time, error) {
	if kindOf(v) == 'n' {
		n, err := truncated(v)
		if err == nil && n >= 0 && n < 1e11 {
			return time.Unix(int64(n), 0).In(m.at().Location()), nil
		}
		return time.Time{}, errNoDate
	}
	text := strings.Join(strings.Fields(textOf(v)), " ")
	switch strings.ToLower(text) {
	case "now", "today":
		return m.at(), nil
	}
	if epoch.MatchString(text) {
		n, _ := strconv.ParseInt(text, 10, 64) // at most eleven digits
		return time.Unix(n, 0).In(m.at().Location()), nil
	}
	if found := slashed.FindStringSubmatch(text); found != nil {
		a, _ := strconv.Atoi(found[1])
		b, _ := strconv.Atoi(found[2])
		day, month := a, b
		switch {
		case a > 12:
		case b > 12:
			day, month = b, a
		case a != b:
			return time.Time{}, errTwoDates
		}
		text = fmt.Sprintf("%s-%02d-%02d", found[3], month, day) + text[len(found[0]):]
	}
	for _, layout := range layouts {
		at, err := time.ParseInLocation(layout, text, m.at().Location())
		if err != nil {
			continue
		}
		if name, offset := at.Zone(); strings.Contains(layout, "MST") && offset == 0 && name != "UTC" && name != "GMT" && at.Location() != m.at().Location() {
			return at, errNoZone // Go gives a zone with an unknown name the offset of UTC
		}
		return at, nil
	}
	return time.Time{}, errNoDate
}
