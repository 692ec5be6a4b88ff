package e2e

import (
	"errors"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sql changes the installation's database directly.
func (b *bundle) sql(statement string) {
	b.t.Helper()
	for _, v := range b.env {
		if url, ok := strings.CutPrefix(v, "DATABASE_URL="); ok {
			conn, err := pgx.Connect(b.t.Context(), url)
			if err != nil {
				b.t.Fatal(err)
			}
			defer conn.Close(b.t.Context())
			if _, err := conn.Exec(b.t.Context(), statement); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }
