package pg

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The bounds of a page beside the number of its items.
const (
	// MaxPageBytes is how many bytes of items a page has before its last one.
	MaxPageBytes = 1 << 20
	// MaxScanned is how many rows are looked at for one page. A filter that few items fit gives short pages, perhaps
	// empty ones, before the end of the list.
	MaxScanned = 10_000
)

// PageQuery reads one page of a list. Its expressions name an item p.
type PageQuery struct {
	Scanned  string // SELECT: the id, the position, and whether it fits the filter, of at most scan rows in the order of the list
	Scan     int    // rows that scanned looks at, at most
	Limit    int    // of items
	Item     string // SELECT: the item of such a row s; empty: the row is the item, with all of its columns
	Join     string // a further table of each item; empty: none
	Columns  string // of an item
	Size     string // how many bytes an item has
	Position string // the columns that order the list
	Order    string // ORDER BY these
	Backward string // the other way round
	Args     []any
}

// Sql returns the statement. Its rows are an item each, with the number of rows that were scanned, the position of the
// last of them, and the number of items that fit, of which limit and one more are counted. If rows were scanned and
// none fits, there is one row without an item.
func (q PageQuery) Sql() string {
	items := fmt.Sprintf(`(SELECT * FROM scanned p WHERE fits ORDER BY %s LIMIT %d)`, q.Order, q.Limit+1)
	if q.Item != "" {
		items += fmt.Sprintf(` s CROSS JOIN LATERAL (%s)`, q.Item)
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
		q.Scanned, q.Position, q.Backward, q.Size, q.Order, items, q.Columns, MaxPageBytes, q.Join)
}

// Sight is what was seen for a page: the rows that were scanned, and how many of them fit, of which one more than a page has is counted.
type Sight struct{ Scanned, Fitting int }

// CollectPage reads the items of a page with scan, and into the fields of last the position of the last row that was
// scanned. The next page begins behind the last item, whose position is then put into last, or else behind that row;
// or the list ends.
func CollectPage[T, P any](rows pgx.Rows, q PageQuery, last *P, fields []any, position func(T) P, scan func(row pgx.CollectableRow, more ...any) (T, error)) (items []T, next *P, seen Sight, err error) {
	defer rows.Close()
	rest := append(append([]any{&seen.Scanned}, fields...), &seen.Fitting)
	for rows.Next() {
		if rows.RawValues()[0] == nil { // there is no item
			err = rows.Scan(append(make([]any, len(rows.RawValues())-len(rest)), rest...)...)
		} else {
			var item T
			item, err = scan(rows, rest...)
			items = append(items, item)
		}
		if err != nil {
			return nil, nil, Sight{}, err
		}
	}
	items = items[:min(len(items), q.Limit)]
	switch {
	case len(items) < seen.Fitting:
		*last = position(items[len(items)-1])
	case seen.Scanned < q.Scan:
		last = nil
	}
	return items, last, seen, rows.Err()
}

// TablesAtOnce is how many tables one statement of a list looks through. A list of years needs several statements, and none
// takes locks of all.
const TablesAtOnce = 8

// MostCounted bounds the pushes or attempts that one count reads.
const MostCounted = 100_000
