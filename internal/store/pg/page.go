package pg

import (
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Limits of a page in addition to the number of its items.
const (
	// MaxPageBytes is the size in bytes at which a page ends, after the item that reaches it.
	MaxPageBytes = 1 << 20
	// MaxScanned is the maximum number of rows read for one page. A filter that few items match gives short or even
	// empty pages before the end of the list.
	MaxScanned = 10_000
)

// PageQuery reads one page of a list. Its SQL expressions name an item p.
type PageQuery struct {
	Scanned  string // SELECT of the id, the position, and fits (whether the filter matches), of at most Scan rows in the order of the list
	Scan     int    // maximum number of rows that Scanned reads
	Limit    int    // maximum number of items
	Item     string // SELECT of the item of a scanned row s; empty: the row is the item, with all of its columns
	Join     string // another table joined to each item; empty: none
	Columns  string // the columns of an item
	Size     string // the size of an item in bytes
	Position string // the columns that order the list
	Order    string // ORDER BY of Position
	Backward string // ORDER BY in the reverse order
	Args     []any
}

// SQL returns the statement. Each row is an item, followed by the number of scanned rows, the position of the last
// scanned row, and the number of matching items, up to Limit+1. If rows were scanned and none matches, there is one
// row without an item.
func (q PageQuery) SQL() string {
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

// PageCounts counts the rows that were scanned for a page, and the items among them that match, up to one more than a page
// holds.
type PageCounts struct{ Scanned, Matching int }

// CollectPage reads the items of a page with scan, and the position of the last scanned row into the fields of last.
// next is the beginning of the next page: after the last item if more items match, or else after the last scanned row.
// It is nil at the end of the list.
func CollectPage[T, P any](rows pgx.Rows, q PageQuery, last *P, fields []any, position func(T) P, scan func(row pgx.CollectableRow, more ...any) (T, error)) (items []T, next *P, seen PageCounts, err error) {
	defer rows.Close()
	rest := append(append([]any{&seen.Scanned}, fields...), &seen.Matching)
	for rows.Next() {
		if rows.RawValues()[0] == nil { // there is no item
			err = rows.Scan(append(make([]any, len(rows.RawValues())-len(rest)), rest...)...)
		} else {
			var item T
			item, err = scan(rows, rest...)
			items = append(items, item)
		}
		if err != nil {
			return nil, nil, PageCounts{}, err
		}
	}
	items = items[:min(len(items), q.Limit)]
	switch {
	case len(items) < seen.Matching:
		*last = position(items[len(items)-1])
	case seen.Scanned < q.Scan:
		last = nil
	}
	return items, last, seen, rows.Err()
}

// TablesAtOnce is the maximum number of tables that one statement of a list reads. A list over years needs several
// statements, and none locks all tables.
const TablesAtOnce = 8

// MostCounted is the maximum number of pushes or attempts that one count reads.
const MostCounted = 100_000
