package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// row returns the prefix of the field names of a row, such as "rules[0].".
func row(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]." }

// maxRows bounds how many rows of a list are read; the API takes fewer.
const maxRows = 1000

// rowsOf returns the number of rows of a list in a form.
func rowsOf(form url.Values, list string) int {
	n := 0
	for n < maxRows && form.Has(row(list, n)+"name") {
		n++
	}
	return n
}

// namesOf splits names at line breaks, because names of categories can have spaces and commas.
func namesOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// words splits a text at commas and spaces.
func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t' })
}

// readReserve reads places that are kept for a category: per-day=2, per-hour=1.
func readReserve(text string) (map[string]int, error) {
	var all map[string]int
	for _, part := range words(text) {
		rule, places, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(places)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q: write a rule and the number to reserve, such as per-day=2", part)
		}
		if all == nil {
			all = map[string]int{}
		}
		if _, twice := all[rule]; twice {
			return nil, errors.New(rule + " is listed twice")
		}
		all[rule] = n
	}
	return all, nil
}

// readCategories reads the rows of categories, and returns them as they were typed, too.
func readCategories(form url.Values, wrong *frame.Faults) (all map[string]client.NewCategory, rows []categoryRow) {
	for i := range rowsOf(form, "categories") {
		at := func(field string) string { return strings.TrimSpace(form.Get(row("categories", i) + field)) }
		r := categoryRow{Name: at("name"), Bypass: at("bypass") != "", Free: at("free") != "", Level: at("level"), Reserve: at("reserve")}
		if r == (categoryRow{}) {
			continue
		}
		r.Counts = at("counts") != ""
		place := row("categories", len(rows))
		rows = append(rows, r)
		reserve, err := readReserve(r.Reserve)
		wrong.Add(place+"reserve", err)
		c := client.NewCategory{Bypass: r.Bypass, Level: client.NewCategoryLevel(r.Level), Reserve: reserve}
		if counts := !r.Free; r.Free || r.Counts {
			c.Counts = &counts
		}
		switch _, twice := all[r.Name]; {
		case r.Name == "":
			wrong.Add(place+"name", errors.New("is required"))
		case twice:
			wrong.Add(place+"name", errors.New("is listed twice"))
		case all == nil:
			all = map[string]client.NewCategory{r.Name: c}
		default:
			all[r.Name] = c
		}
	}
	return all, rows
}

// inList is a place in a list that has one field in the editor.
var inList = regexp.MustCompile(`^((?:rules|quiet_hours)\[\d+\]\.(?:days|channels|categories))\[\d+\]$`)

// atRows has what the API finds wrong stand at the fields of the editor. The API names categories, and the editor numbers them; of a
// list, such as days, the API finds each member, and the editor has one field.
func atRows(err error, rows []categoryRow) error {
	var invalid *client.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	for i, f := range invalid.Errors {
		if list := inList.FindStringSubmatch(frame.FieldOf(f.Location)); list != nil {
			invalid.Errors[i].Location = list[1]
			if name, is := f.Value.(string); is && name != "" {
				invalid.Errors[i].Message = "“" + name + "” " + f.Message
			}
		}
		for n, r := range rows {
			if frame.FieldOf(f.Location) == "categories."+r.Name+".level" {
				invalid.Errors[i].Location = row("categories", n) + "level"
			}
			if rule, is := strings.CutPrefix(frame.FieldOf(f.Location), "categories."+r.Name+".reserve."); is {
				invalid.Errors[i].Location, invalid.Errors[i].Message = row("categories", n)+"reserve", rule+": "+f.Message
			}
		}
	}
	return err
}

func categoryRows(all map[string]client.NewCategory) []categoryRow {
	var rows []categoryRow
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		var reserve []string
		for _, rule := range slices.Sorted(maps.Keys(c.Reserve)) {
			reserve = append(reserve, rule+"="+strconv.Itoa(c.Reserve[rule]))
		}
		rows = append(rows, categoryRow{name, c.Bypass, c.Counts != nil && !*c.Counts, c.Counts != nil && *c.Counts, string(c.Level), strings.Join(reserve, ", ")})
	}
	return rows
}

// asNew is a policy as it can be sent back.
func asNew(in client.Policy) client.NewPolicy {
	text, err := json.Marshal(in)
	if err != nil {
		panic(err) // it came as JSON
	}
	return newPolicyOf(text)
}

// newPolicyOf reads a document; what only answers have is left out.
func newPolicyOf(text []byte) client.NewPolicy {
	var d client.NewPolicy
	_ = json.Unmarshal(text, &d) // documents of the API have this shape
	d.Source, d.Version = nil, nil
	return d
}

// pastVersion is a version of the policy that can be loaded into the editor.
type pastVersion struct{ client.PolicyVersion }

func versionOf(all []client.PolicyVersion, number string) (pastVersion, bool) {
	for _, v := range all {
		if strconv.FormatInt(v.Version, 10) == number && v.Policy != nil {
			return pastVersion{v}, true
		}
	}
	return pastVersion{}, false
}

func (v pastVersion) document() client.NewPolicy {
	text, err := json.Marshal(v.Policy)
	if err != nil {
		panic(err) // it came as JSON
	}
	return newPolicyOf(text)
}
