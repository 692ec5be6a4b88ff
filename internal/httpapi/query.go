package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
)

// query reads the parameters behind the question mark and collects what is
// wrong with them. Where a filter is present but empty, it counts as absent.
type query struct {
	values url.Values
	faults *faults
}

// readQuery faults parameters that are not known, and those given twice.
func readQuery(r *http.Request, bad *faults, known ...string) query {
	if r.URL.RawQuery == "" {
		return query{faults: bad}
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		bad.add("query", "is malformed: parameters are separated by & and escaped with %", nil)
	}
	q := query{values: values, faults: bad}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			q.bad(short([]byte(strings.ToValidUTF8(name, "\uFFFD"))), "unexpected parameter", given[0])
		case len(given) > 1:
			q.bad(name, "is given more than once", given[1])
		}
	}
	slices.SortFunc(bad.list, func(a, b invalid.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return q
}

func (q query) bad(name, message, value string) {
	q.faults.add("query."+name, message, shown(strings.ToValidUTF8(value, "\uFFFD")))
}

// text reads a printable text of at most so many bytes.
func (q query) text(name string, most int) string {
	v := q.values.Get(name)
	if message := unfit(v, 0, most); message != "" {
		q.bad(name, message, v)
		return ""
	}
	return v
}

// oneOf reads one of a few words.
func (q query) oneOf(name string, words ...string) string {
	v := q.values.Get(name)
	if v != "" && !slices.Contains(words, v) {
		q.bad(name, "must be one of: "+strings.Join(words, ", "), v)
		return ""
	}
	return v
}

// time reads a time, or returns the fallback. A plus sign that was not escaped
// has become a blank; what it was meant to be is clear.
func (q query) time(name string, fallback time.Time) time.Time {
	v := q.values.Get(name)
	if v == "" {
		return fallback
	}
	mended := v
	if n := len(v) - len("+00:00"); n > 0 && v[n] == ' ' {
		mended = v[:n] + "+" + v[n+1:]
	}
	t, message := parseTime(mended)
	if message != "" {
		q.bad(name, message, v)
		return fallback
	}
	return t
}

// int reads a number from least to most.
func (q query) int(name string, fallback, least, most int) int {
	v := q.values.Get(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		q.bad(name, "must be a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most), v)
		return fallback
	}
	return n
}

// id reads a UUID.
func (q query) id(name string) uuid.UUID {
	v := q.values.Get(name)
	id, err := uuid.Parse(v)
	if v != "" && (err != nil || len(v) != 36) {
		q.bad(name, "must be a UUID", v)
	}
	return id
}

// flag reads true or false. Unlike a filter it must not be empty: what does
// not clearly say whether it is a rehearsal must not be carried out.
func (q query) flag(name string) bool {
	if !q.values.Has(name) {
		return false
	}
	v := q.values.Get(name)
	if v != "true" && v != "false" {
		q.bad(name, "must be true or false", v)
	}
	return v == "true"
}
