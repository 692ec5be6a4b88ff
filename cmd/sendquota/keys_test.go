package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
)

// TestCreateKey_Flags: absent flags mean all scopes and no end; a flag with an empty
// value, as from a shell variable that is not set, is an error.
func TestCreateKey_Flags(t *testing.T) {
	for _, row := range []struct {
		args    []string
		scopes  []string
		expires time.Duration // 0: none
		wrong   string
	}{
		{nil, push.Scopes, 0, ""},
		{[]string{"--scopes", "quota:read", "--expires", "720h"}, []string{"quota:read"}, 720 * time.Hour, ""},
		{[]string{"--scopes", ""}, nil, 0, "--scopes: is empty; the scopes are: pushes:write"},
		{[]string{"--scopes="}, nil, 0, "--scopes: is empty"},
		{[]string{"--scopes", "quota:write"}, nil, 0, "--scopes: unknown scope"},
		{[]string{"--expires", "0s"}, nil, 0, "--expires 0 seconds: must be positive"},
		{[]string{"--expires=-1h"}, nil, 0, "must be positive"},
		{[]string{"--expires", "1ns"}, nil, 0, "must be positive"},
		{[]string{"--expires", ""}, nil, 0, "--expires"},
		{[]string{"--name", "back office"}, push.Scopes, 0, ""},
		{[]string{"--name", "a\nb"}, nil, 0, "--name"},
	} {
		var c createKey
		parser, err := kong.New(&c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(append([]string{"--tenant", "acme"}, row.args...))
		switch {
		case row.wrong != "":
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%q: %v, want %s", row.args, err, row.wrong)
			}
		case err != nil:
			t.Errorf("%q: %v", row.args, err)
		case !slices.Equal(c.Scopes, row.scopes) || (c.Expires != nil) != (row.expires != 0) || c.Expires != nil && *c.Expires != row.expires:
			t.Errorf("%q: %+v", row.args, c)
		}
	}
}

// TestRotateKey_Flags: negative and zero times are errors, and so is a key instead of an id.
func TestRotateKey_Flags(t *testing.T) {
	const id = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	for _, row := range []struct {
		args  []string
		wrong string
	}{
		{[]string{id}, ""},
		{[]string{id, "--overlap", "0s", "--expires", "1h"}, ""},
		{[]string{id, "--overlap=-1s"}, "--overlap -1 second: must not be negative"},
		{[]string{id, "--expires", "0s"}, "--expires 0 seconds: must be positive"},
		{[]string{id, "--overlap", ""}, "--overlap"},
		{[]string{"nonsense"}, `"nonsense": expected the id of a key, a UUID as sendquota keys list shows it`},
		{[]string{"sq_secret"}, "<id>: expected the id of a key, a UUID as sendquota keys list shows it, not the key itself"},
		{[]string{strings.Repeat("x", 43)}, "<id>: expected the id of a key"},
		{nil, "<id>"},
	} {
		parser, err := kong.New(new(rotateKey))
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(row.args)
		if (err == nil) != (row.wrong == "") || err != nil && !strings.Contains(err.Error(), row.wrong) {
			t.Errorf("%q: %v, want %q", row.args, err, row.wrong)
		}
	}
}

// TestListKeys_Output: the list has the successor of each key.
func TestListKeys_Output(t *testing.T) {
	old, fresh := uuid.MustParse("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"), uuid.MustParse("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f02")
	keys := []apikey.Key{{ID: old, Tenant: "acme", Name: "web", Scopes: push.Scopes, Successor: fresh}, {ID: fresh, Tenant: "acme"}}
	var table, list strings.Builder
	if err := errors.Join(printKeys(&table, false, keys), printKeys(&list, true, keys)); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	for i, end := range []string{"SUCCESSOR", fresh.String(), "-"} {
		if !strings.HasSuffix(lines[i], "  "+end) {
			t.Errorf("line %q, want at its end %s", lines[i], end)
		}
	}
	for _, want := range []string{`"successor":"` + fresh.String() + `"`, `"successor":null`, `"name":"web"`, `"name":""`} {
		if strings.Count(list.String(), want) != 1 {
			t.Errorf("%s has no %s", list.String(), want)
		}
	}
}

// TestDurations: a flag that is a duration may have days.
func TestDurations(t *testing.T) {
	for _, row := range []struct {
		text string
		want time.Duration // 0: it is refused
	}{{"30d", 720 * time.Hour}, {"1d12h", 36 * time.Hour}, {"90s", 90 * time.Second}, {"30", 0}, {"1D", 0}} {
		var c createKey
		parser, err := kong.New(&c, durations)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse([]string{"--tenant", "acme", "--expires", row.text})
		if (err == nil) != (row.want > 0) || err == nil && *c.Expires != row.want || err != nil && !strings.Contains(err.Error(), "must be a duration, such as") {
			t.Errorf("%s: %+v, %v", row.text, c.Expires, err)
		}
	}
}
