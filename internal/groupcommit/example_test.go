package groupcommit_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/sendquota/sendquota/internal/groupcommit"
)

// Many goroutines insert a row each. Rows that arrive while a transaction is under way share the next one.
func ExampleGroup() {
	var transactions, rows int
	inserts := groupcommit.Group[string, int]{
		MaxWeight: 100, // rows of one transaction
		Run: func(_ context.Context, names []string) ([]int, error) {
			transactions++
			ids := make([]int, len(names)) // one result for each request, in the same order
			for i := range names {
				rows++
				ids[i] = rows
			}
			return ids, nil
		},
	}
	var all sync.WaitGroup
	for n := range 1000 {
		all.Go(func() {
			if id, err := inserts.Do(fmt.Sprint("row ", n)); err != nil || id == 0 {
				fmt.Println(id, err)
			}
		})
	}
	all.Wait()
	fmt.Println(rows, "rows; no more transactions than rows:", transactions <= rows)
	// Output: 1000 rows; no more transactions than rows: true
}
