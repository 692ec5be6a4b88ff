package store

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The bounds of a page beside the number of its items.
const (
	// maxPageBytes is how many bytes of items a page has before its last one.
	maxPageBytes = 1 << 20
	// maxScanned is how many rows are looked at for one page. A filter that few items fit gives short pages, perhaps
	// empty ones, before the end of the list.
	maxScanned = 10_000
)

// pageQuery reads one page of a list. Its expressions name an item p.
type pageQuery struct {
	scanned  string // SELECT: the id, the position, and whether it fits the filter, of at most scan rows in the order of the list
	scan     int    // rows that scanned looks at, at most
	limit    int    // of items
	item     string // SELECT: the item of such a row s; empty: the row is the item, with all of its columns
	join     string // a further table of each item; empty: none
	columns  string // of an item
	size     string // how many bytes an item has
	position string // the columns that order the list
	order    string // ORDER BY these
	backward string // the other way round
	args     []any
}

// sql returns the statement. Its rows are an item each, with the number of rows that were scanned, the position of the
// last of them, and the number of items that fit, of which limit and one more are counted. If rows were scanned and
// none fits, there is one row without an item.
func (q pageQuery) sql() string {
	items := fmt.Sprintf(`(SELECT * FROM scanned p WHERE fits ORDER BY %s LIMIT %d)`, q.order, q.limit+1)
	if q.item != "" {
		items += fmt.Sprintf(` s CROSS JOIN LATERAL (%s)`, q.item)
	}
	return fmt.Sprintf(`
	WITH scanned AS MATERIALIZED (%s), last AS (
		SELECT (SELECT count(*) FROM scanned) AS n, %s FROM scanned p ORDER BY %s LIMIT 1
	), page AS (
		SELECT p.*, count(*) OVER () AS fitting,
			coalesce(sum(%s) OVER (ORDER BY %s ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS bytes_before
		FROM %[6]s p
	)
	SELECT %[7]s, last.*, coalesce(p.fitting, 0)
	FROM last LEFT JOIN page p ON p.bytes_before < %[8]d %[9]s
	ORDER BY %[5]s`,
		q.scanned, q.position, q.backward, q.size, q.order, items, q.columns, maxPageBytes, q.join)
}

// sight is what was seen for a page: the rows that were scanned, and how many of them fit, of which one more than a page has is counted.
type sight struct{ scanned, fitting int }

// collectPage reads the items of a page with scan, and into the fields of last the position of the last row that was
// scanned. The next page begins behind the last item, whose position is then put into last, or else behind that row;
// or the list ends.
func collectPage[T, P any](rows pgx.Rows, q pageQuery, last *P, fields []any, position func(T) P, scan func(row pgx.CollectableRow, more ...any) (T, error)) (items []T, next *P, seen sight, err error) {
	defer rows.Close()
	rest := append(append([]any{&seen.scanned}, fields...), &seen.fitting)
	for rows.Next() {
		if rows.RawValues()[0] == nil { // there is no item
			err = rows.Scan(append(make([]any, len(rows.RawValues())-len(rest)), rest...)...)
		} else {
			var item T
			item, err = scan(rows, rest...)
			items = append(items, item)
		}
		if err != nil {
			return nil, nil, sight{}, err
		}
	}
	items = items[:min(len(items), q.limit)]
	switch {
	case len(items) < seen.fitting:
		*last = position(items[len(items)-1])
	case seen.scanned < q.scan:
		last = nil
	}
	return items, last, seen, rows.Err()
}

// tablesAtOnce is how many tables one statement of a list looks through. A list of years needs several statements, and none
// takes locks of all.
const tablesAtOnce = 8

// mostCounted bounds the pushes or attempts that one count reads.
const mostCounted = 100_000
