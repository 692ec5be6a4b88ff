package devstack

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
)

// hostOf is the "host:port" of a URL.
func hostOf(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// standard starts servers that stand for somebody's on the standard ports,
// and returns a Config for a machine that has these and no binaries.
func standard(t *testing.T) (*Stack, Config) {
	t.Helper()
	s := start(t, Config{})
	places, _ := bareMachine(t)
	places.postgresPort, places.redisPort = hostOf(t, s.Postgres.URL), hostOf(t, s.Redis.URL)
	return s, Config{places: places, noInstall: true, Progress: t.Output()}
}

func TestShared_ForeignData(t *testing.T) {
	theirs, c := standard(t)
	query(t, theirs.Postgres.URL, "CREATE TABLE foreign_data AS SELECT 42 AS n")
	databases := "SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database"
	before := query(t, theirs.Postgres.URL, databases)
	used := []int{0, PrivateIndexes - 1} // and the last, where the search begins
	for _, n := range used {
		at, err := indexURL(theirs.Redis.URL, n)
		if err != nil {
			t.Fatal(err)
		}
		if err := client(t, at).Set(t.Context(), "foreign", n, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}

	ours, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	query(t, ours.Postgres.URL, "CREATE TABLE foreign_data AS SELECT 1 AS n")
	borrowed := client(t, ours.Redis.URL)
	if err := borrowed.Set(t.Context(), "foreign", "ours", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("/%d", PrivateIndexes-2); !strings.HasSuffix(ours.Redis.URL, want) {
		t.Errorf("borrowed %s, want index %s", ours.Redis.URL, want)
	}
	if ours.Postgres.Private() || ours.Redis.Private() {
		t.Error("a borrowed server is taken for ours")
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}

	if got := query(t, theirs.Postgres.URL, databases); got != before {
		t.Errorf("databases %v, before %v", got, before)
	}
	if got := query(t, theirs.Postgres.URL, "SELECT n FROM foreign_data"); got != int32(42) {
		t.Errorf("their table has %v", got)
	}
	for _, n := range used {
		at, _ := indexURL(theirs.Redis.URL, n)
		if got, err := client(t, at).Get(t.Context(), "foreign").Int(); got != n || err != nil {
			t.Errorf("their key in index %d is %d, %v", n, got, err)
		}
	}
	if n := borrowed.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left in the index that was given back", n)
	}
}

func TestBorrowIndex_OneBorrower(t *testing.T) {
	t.Parallel()
	server, err := StartRedis(t.Context(), Config{Dir: openDir(t), OwnProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, server)
	const indexes, borrowers = 16, 20 // sixteen is Redis' default, and one of them is 0
	var (
		mu     sync.Mutex
		got    = make(map[string]*Server)
		empty  int
		all    sync.WaitGroup
		failed []error
	)
	for range borrowers {
		all.Go(func() {
			s, err := BorrowIndex(t.Context(), server.URL)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, ErrNoEmptyIndex):
				empty++
			case err != nil:
				failed = append(failed, err)
			default:
				got[s.URL] = s
			}
		})
	}
	all.Wait()
	if len(got) != indexes-1 || empty != borrowers-len(got) || failed != nil {
		t.Errorf("%d indexes borrowed, %d times none empty, errors %v", len(got), empty, failed)
	}
	for _, s := range got {
		closeIt(t, s)
	}
	again, err := BorrowIndex(t.Context(), server.URL)
	if err != nil {
		t.Fatalf("after all were given back: %v", err)
	}
	closeIt(t, again)
}

// An index whose borrower was killed is emptied and borrowed again; one that
// looks alike but belongs to another machine, or has no mark, is not.
func TestBorrowIndex_DeadBorrower(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	const noProcess = 1 << 30 // above any system's limit
	for marker, want := range map[string]bool{
		fmt.Sprintf("%s %d x", host, noProcess):     true,
		fmt.Sprintf("%s %d x", host, os.Getpid()):   false,
		fmt.Sprintf("not-%s %d x", host, noProcess): false,
	} {
		c := client(t, s.Redis.URL)
		if err := c.MSet(t.Context(), "left", 1, indexMarker, marker).Err(); err != nil {
			t.Fatal(err)
		}
		owner, err := claim(t.Context(), s.Redis.URL)
		if err != nil || (owner != "") != want {
			t.Errorf("claim of %q: %q, %v", marker, owner, err)
		}
		if left := c.Exists(t.Context(), "left").Val() == 1; left == want {
			t.Errorf("marker %q: the old key is still there: %v", marker, left)
		}
	}
}

func TestBorrowIndex_WithoutMarker(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	borrowed, err := BorrowIndex(t.Context(), s.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, borrowed.URL)
	if err := c.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.Set(t.Context(), "somebody's", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := borrowed.Close(); err == nil {
		t.Error("Close of an index that is no longer marked is silent")
	}
	if c.DBSize(t.Context()).Val() != 1 {
		t.Error("somebody's key is gone")
	}
}
