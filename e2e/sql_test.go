package e2e

import (
	"errors"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sql changes the world's database behind sendquota's back.
func (w *world) sql(statement string) {
	w.t.Helper()
	for _, v := range w.env {
		if url, ok := strings.CutPrefix(v, "DATABASE_URL="); ok {
			conn, err := pgx.Connect(w.t.Context(), url)
			if err != nil {
				w.t.Fatal(err)
			}
			defer conn.Close(w.t.Context())
			if _, err := conn.Exec(w.t.Context(), statement); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }
