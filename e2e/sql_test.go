package e2e

import (
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// sql changes the installation's database directly.
func (b *bundle) sql(statement string) {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.Database)
	testenv.Check(b.t, err)
	defer conn.Close(b.t.Context())
	_, err = conn.Exec(b.t.Context(), statement)
	testenv.Check(b.t, err)
}
