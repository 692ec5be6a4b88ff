package main

import (
	"strings"
	"testing"
)

// TestCreateTenant_Names: the error quotes an invalid name, and only the beginning of a long one.
func TestCreateTenant_Names(t *testing.T) {
	for _, row := range []struct{ name, wrong string }{
		{"acme", ""},
		{strings.Repeat("é", 100), ""},
		{"", `name "": must be 1 to 100 printable characters`},
		{"a\nb", `name "a\nb": must be`},
		{strings.Repeat("é", 5000), `name "` + strings.Repeat("é", 40) + `"… (5000 characters): must be`},
	} {
		err := createTenant{Name: row.name}.Validate()
		if (err == nil) != (row.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), row.wrong) {
			t.Errorf("%v, want %q", err, row.wrong)
		}
	}
}
