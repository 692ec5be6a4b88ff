package pg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkPooler books and reads single pushes, one after another, directly and through PgBouncer.
func BenchmarkPooler(b *testing.B) {
	for _, way := range []string{"direct", "PgBouncer"} {
		b.Run(way, func(b *testing.B) {
			s := setupNew(b)
			if way == "PgBouncer" {
				s.Store = storetest.OpenURL(b, testenv.PgBouncer(b, s.URL, poolerConnections).URL, store.Config{})
			}
			n := 0
			b.Run("book", func(b *testing.B) {
				for b.Loop() {
					n++
					s.Booked(b, fmt.Sprint("r", n), time.Hour)
				}
			})
			p := s.Booked(b, "anna", time.Hour)
			b.Run("read", func(b *testing.B) {
				for b.Loop() {
					s.MustRead(b, p)
				}
			})
		})
	}
}
