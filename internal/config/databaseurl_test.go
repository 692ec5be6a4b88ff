package config

import "testing"

// TestDatabaseURL: what has one meaning is written so that every parser finds
// it; the rest is refused.
func TestDatabaseURL(t *testing.T) {
	t.Parallel()
	const unclear = ""
	for given, want := range map[string]string{
		// As it is.
		"postgres://u:p@h:5432/db": "postgres://u:p@h:5432/db", "postgresql://": "postgresql://", "postgres://h": "postgres://h", "postgres://u@h/": "postgres://u@h/",
		"postgres://u:p%40%2F%23%3f%25%20@h/db":                  "postgres://u:p%40%2F%23%3f%25%20@h/db",
		"postgres://u:a+b=c!$&'()*,;:~@h/db":                     "postgres://u:a+b=c!$&'()*,;:~@h/db",
		"postgres://u:p@a:1,b,[fd00::1%25eth0]:3/db?sslmode=off": "postgres://u:p@a:1,b,[fd00::1%25eth0]:3/db?sslmode=off",
		"postgres:///db?host=/run/postgresql&user=a@b":           "postgres:///db?host=/run/postgresql&user=a@b",
		"postgres://u:p@h/db?application_name=me@here&x=y":       "postgres://u:p@h/db?application_name=me@here&x=y",
		"postgres://h/db?application_name=me@here":               "postgres://h/db?application_name=me@here",
		"postgres://u@%2Frun%2Fpostgresql/db":                    "postgres://u@%2Frun%2Fpostgresql/db",
		"postgres://h/a@b":                                       "postgres://h/a@b",
		"postgres://bücher_1.example/my db":                      "postgres://bücher_1.example/my db",
		"postgres://u:@h":                                        "postgres://u:@h",

		// Understood, and written plainly.
		"postgres://u:p@ss@h:5432/db":          "postgres://u:p%40ss@h:5432/db",
		"postgres://u:p/w@h/db":                "postgres://u:p%2Fw@h/db",
		"postgres://u:12/34@h/db":              "postgres://u:12%2F34@h/db",
		"postgres://u:p@ss/w@h/db":             "postgres://u:p%40ss%2Fw@h/db",
		"postgres://u:p#w@h":                   "postgres://u:p%23w@h",
		"postgres://u:p?w@h":                   "postgres://u:p%3Fw@h",
		"postgres://u:12?w@h":                  "postgres://u:12%3Fw@h",
		"postgres://u:100%@h/db?sslmode=off":   "postgres://u:100%25@h/db?sslmode=off",
		"postgres://u:two words+é@h/db":        "postgres://u:two%20words%2B%C3%A9@h/db",
		"postgres://u:@/#?%& @h/db":            "postgres://u:%40%2F%23%3F%25%26%20@h/db",
		"postgres://user@tenant:p@h/db":        "postgres://user%40tenant:p@h/db",
		"postgres://user@tenant@h/db":          "postgres://user%40tenant@h/db",
		"postgres://u:p/w@h/db?options=-c a=b": "postgres://u:p%2Fw@h/db?options=-c a=b",

		// More than one meaning: half of each password could be a host.
		"postgres://u:p@h/a@b": unclear, "postgres://u:12/34@h": unclear, "postgres://h:5432/a@b": unclear, "postgres://u:p@h/db?my.own=a@b": unclear,
		"postgres://u:p@ss/w@h?sslmode=off": unclear, "postgres://u:12?x=1@h/db": unclear, "postgres://u:12/x?y=1@h/db": unclear,
		// Percent-encoded in part.
		"postgres://u:p%41/w@h": unclear, "postgres://u:p%41%zz@h": unclear, "postgres://u:p%40@w@h": unclear,
		// None.
		"postgres://u:p": unclear, "postgres://u:p/w#x": unclear, "postgres://h/a/b": unclear, "postgres://u:p@h/db#x": unclear, "postgres://u:p@h/db\n": unclear,
		"postgres://u:p@h/db?x": unclear, "postgres://u:p@h/%zz": unclear, "postgres://u:p@h?password=%zz": unclear, "postgres://u:p@h?a b=c": unclear, "postgres://[::1": unclear, "postgres://u:%00@h": unclear,
	} {
		got, wrong := parseDatabaseURL(given)
		if got != want || (wrong == unclearDatabaseURL) != (want == unclear) {
			t.Errorf("%s: %q %s, want %q", given, got, wrong, want)
		}
	}
	if _, wrong := parseDatabaseURL("mysql://h"); wrong != noDatabaseURL {
		t.Error(wrong)
	}
}
