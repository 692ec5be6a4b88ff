package devstack

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldestPostgres is the lowest major version that sendquota works with.
const oldestPostgres = 15

// searchPaths lists where programs may be on a machine.
type searchPaths struct {
	postgresFolders []string // patterns of folders, besides PATH
	redisFolders    []string
	pgbouncer       []string // paths
	chromium        []string // paths
	policyFile      string   // see denyServiceStart
}

func usualPaths() *searchPaths {
	return &searchPaths{
		postgresFolders: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql*/bin",
			"/usr/local/opt/postgresql*/bin",
			"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		},
		redisFolders: []string{
			"/opt/homebrew/opt/redis*/bin",
			"/usr/local/opt/redis*/bin",
			"/home/linuxbrew/.linuxbrew/opt/redis*/bin",
		},
		pgbouncer:  []string{"/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer", "/usr/local/bin/pgbouncer"},
		chromium:   []string{"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"},
		policyFile: "/usr/sbin/policy-rc.d",
	}
}

// PostgresPrograms returns the folder with the programs of the Postgres that
// would be started, pg_dump and psql among them.
func PostgresPrograms() (string, error) {
	dir, err := usualPaths().postgresBin(0)
	if err != nil {
		return "", err
	}
	server, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	return filepath.Dir(server), err
}

// RedisProgram returns the path of the Redis server that would be started. With --sentinel, it is a sentinel.
func RedisProgram() (string, error) { return usualPaths().redisBin() }

// postgresBin returns the folder with postgres and initdb: the one in PATH if
// it is new enough, else the highest version. A major version other than 0
// must match exactly, for data that exists can only be read by its own.
func (p *searchPaths) postgresBin(major int) (string, error) {
	var seen []string
	for _, dir := range p.postgresCandidates() {
		have, err := postgresMajor(dir)
		if err != nil {
			seen = append(seen, err.Error())
			continue
		}
		if have == major || major == 0 && have >= oldestPostgres {
			return dir, nil
		}
		seen = append(seen, fmt.Sprintf("%s has version %d", dir, have))
	}
	want := fmt.Sprintf("Postgres %d or newer", oldestPostgres)
	if major != 0 {
		want = fmt.Sprintf("Postgres %d, which made the data,", major)
	}
	if seen == nil {
		return "", fmt.Errorf("no binaries of %s in PATH or the usual folders", want)
	}
	return "", fmt.Errorf("no binaries of %s: %s", want, strings.Join(seen, "; "))
}

// postgresCandidates lists folders that hold both programs, PATH first, then
// by falling version.
func (p *searchPaths) postgresCandidates() []string {
	var found []string
	for _, pattern := range p.postgresFolders {
		dirs, _ := filepath.Glob(pattern) // fails on a bad pattern only
		found = append(found, dirs...)
	}
	slices.SortStableFunc(found, func(a, b string) int {
		// …/postgresql/15/bin, …/postgresql@15/bin
		return versionIn(filepath.Base(filepath.Dir(b))) - versionIn(filepath.Base(filepath.Dir(a)))
	})
	if path, err := exec.LookPath("postgres"); err == nil {
		found = slices.Insert(found, 0, filepath.Dir(path))
	}
	return slices.DeleteFunc(found, func(dir string) bool {
		_, e1 := exec.LookPath(filepath.Join(dir, "postgres"))
		_, e2 := exec.LookPath(filepath.Join(dir, "initdb"))
		return errors.Join(e1, e2) != nil
	})
}

// versionIn is the first number in a text such as "postgresql@15".
func versionIn(text string) int {
	digits := strings.FieldsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0])
	return n
}

// postgresMajor asks the binary, for a folder's name may lie.
func postgresMajor(dir string) (int, error) {
	out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("%s/postgres --version: %w", dir, err)
	}
	major := versionIn(string(out))
	if major == 0 {
		return 0, fmt.Errorf("%s/postgres --version says %q", dir, out)
	}
	return major, nil
}

// redisBin returns the path of a Redis server, or of Valkey, which speaks the
// same protocol and reads the same settings.
func (p *searchPaths) redisBin() (string, error) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		for _, pattern := range p.redisFolders {
			paths, _ := filepath.Glob(filepath.Join(pattern, name))
			for _, path := range paths {
				if _, err := exec.LookPath(path); err == nil {
					return path, nil
				}
			}
		}
	}
	return "", errors.New("no redis-server in PATH or the usual folders")
}
