package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
)

// printList prints a list as one JSON object with that name, or as a table with a column for each title.
func printList[T any](w io.Writer, asJSON bool, name string, all []T, titles []string, cells func(T) []string) error {
	if asJSON {
		return json.NewEncoder(w).Encode(map[string][]T{name: all})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(titles, "\t"))
	for _, one := range all {
		fmt.Fprintln(t, strings.Join(cells(one), "\t"))
	}
	return t.Flush()
}

// timeOrDash is a time to be read, or a dash for never.
func timeOrDash(at *time.Time) string {
	if at == nil {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func idOrDash(id *uuid.UUID) string {
	if id == nil {
		return "-"
	}
	return id.String()
}
