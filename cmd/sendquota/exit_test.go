package main

import (
	"encoding/json"
	"flag"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/testenv"
)

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour).Truncate(time.Second) }

// faultStatuses are the exit statuses of one kind of command for each kind of fault; -1: the fault is impossible.
type faultStatuses struct {
	setting int // DATABASE_URL, or the API key, is missing
	away    int // the server does not answer
	full    int // standard output cannot be written

	means [4]string // what each exit status means
}

// wrongLine is the meaning of exit status 2 for all commands.
const wrongLine = "the command line is wrong"

var (
	ofStore    = faultStatuses{1, 1, 1, [4]string{"done", "failed", wrongLine, ""}}
	ofMigrate  = faultStatuses{1, 1, 1, [4]string{"done", "failed, or `--status`: some migrations are missing", wrongLine, ""}}
	ofSeal     = faultStatuses{1, 1, 1, [4]string{"all secrets are sealed with `SENDQUOTA_SEAL_KEY`", "some are not, or it failed", wrongLine, ""}}
	ofApply    = faultStatuses{1, 1, 1, [4]string{"done", "failed, or the policy has errors", wrongLine, "`--forecast`: some pushes do not fit"}}
	ofAudit    = faultStatuses{2, 2, 2, [4]string{"no violation", "violations", "the audit failed, or " + wrongLine, ""}}
	ofImport   = faultStatuses{2, 2, 2, [4]string{"every line is stored", "some lines were rejected", "the import failed, or " + wrongLine, ""}}
	ofCampaign = faultStatuses{2, 3, 3, [4]string{"done", "some recipients were not sent it, or the command was interrupted",
		wrongLine + ", there is no API key, or a file cannot be read", "the API refused it or did not answer, you said no, or the result cannot be printed"}}
	ofConfig = faultStatuses{1, -1, 1, [4]string{"no error", "errors", wrongLine, ""}}
	local    = faultStatuses{-1, -1, 1, ofConfig.means}
)

type commandRow struct {
	path, args, missing string
	faultStatuses
}

// commandRows are all commands, each with a command line that succeeds and one that names an unknown object.
var commandRows = []commandRow{
	{"config check", "", "/no/such/file", ofConfig},
	{"migrate", "", "", ofMigrate},
	{"seal rotate", "", "", ofSeal},
	{"tenants create", "acme", "", ofStore},
	{"pause", "--tenant acme --category news --reason test --until 2h", "--tenant none --all", ofStore},
	{"pauses", "", "--tenant none", ofStore},
	{"resume", "--tenant acme --category news", "--tenant none --all", ofStore},
	{"tenants list", "", "", ofStore},
	{"tenants top", "", "", ofStore},
	{"tenants cap", "acme --pending 5000", "none --pending 5000", ofStore},
	{"tenants rename", "{fresh} {email}", "none {email}", ofStore},
	{"tenants delete", "--yes {doomed}", "--yes none", ofStore},
	{"tenants export", "acme {folder}", "none {folder}", ofStore},
	{"keys create", "--tenant acme", "--tenant none", ofStore},
	{"keys list", "", "--tenant none", ofStore},
	{"keys rotate", "{key}", "{none}", ofStore},
	{"keys revoke", "{key}", "{none}", ofStore},
	{"users create", "--tenant acme --email {email} --role viewer", "--tenant none --email a@b --role viewer", ofStore},
	{"users list", "", "--tenant none", ofStore},
	{"users link", "{user}", "{none}", ofStore},
	{"users disable", "{user}", "{none}", ofStore},
	{"policy show", "--tenant acme", "--tenant none", ofStore},
	{"policy check", "{policy}", "/no/such/file", local},
	{"policy apply", "{policy} --tenant acme", "{policy} --tenant none", ofApply},
	{"status", "", "--tenant none", ofStore},
	{"channels list", "", "--tenant none", ofStore},
	{"channels set", "--tenant acme own {channel}", "--tenant none own {channel}", ofStore},
	{"channels test", "--tenant acme {own}", "--tenant acme none", ofStore},
	{"channels delete", "--tenant acme {own}", "--tenant acme none", ofStore},
	{"failures", "", "--tenant none", ofStore},
	{"webhooks", "", "--tenant none", ofStore},
	{"push get", "{push}", "{none}", ofStore},
	{"push list", "", "--tenant none", ofStore},
	{"push cancel", "{push}", "{none}", ofStore},
	{"schedules list", "", "--tenant none", ofStore},
	{"recipients import", "{csv}", "/no/such/file", ofImport},
	{"campaign run", "{csv} --message {\"title\":\"x\"} --send-at {tomorrow}", "/no/such/file --message {}", ofCampaign},
	{"campaign list", "", "", ofCampaign},
	{"campaign show", "{draft}", "{none}", ofCampaign},
	{"campaign start", "{draft}", "{none}", ofCampaign},
	{"campaign pause", "{started}", "{none}", ofCampaign},
	{"campaign resume", "{started}", "{none}", ofCampaign},
	{"campaign cancel", "{started}", "{none}", ofCampaign},
	{"audit", "", "", ofAudit},
}

// withoutData are the commands that print no data.
var withoutData = []string{"dev", "completion"}

// leaves lists the commands of the tool by their paths.
func leaves(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser, err := kong.New(&commands, kong.Name("sendquota"), kong.Vars{"version": ""})
	testenv.Check(t, err)
	all := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(false) {
		all[strings.TrimPrefix(regexp.MustCompile(` [<\[].*`).ReplaceAllString(leaf.FullPath(), ""), "sendquota ")] = leaf
	}
	return all
}

// TestCommands_Listed: the table above has every command, and each that prints data has --json.
func TestCommands_Listed(t *testing.T) {
	t.Parallel()
	for path, leaf := range leaves(t) {
		known := slices.ContainsFunc(commandRows, func(r commandRow) bool { return r.path == path })
		if known == slices.Contains(withoutData, path) {
			t.Errorf("%s is in neither or both of commandRows and withoutData", path)
		}
		if known != slices.ContainsFunc(leaf.Flags, func(f *kong.Flag) bool { return f.Name == "json" }) {
			t.Errorf("%s prints data without --json, or has --json without data", path)
		}
	}
}

var update = flag.Bool("update", false, "write the exit statuses into docs/operations.md")

// TestExitStatus_Documented: docs/operations.md has the table of commandRows.
func TestExitStatus_Documented(t *testing.T) {
	const path, begin, end = "../../docs/operations.md", "<!-- exit: written by `go test ./cmd/sendquota -run ExitStatus_Documented -update` -->\n", "  <!-- /exit -->"
	text, err := os.ReadFile(path)
	testenv.Check(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	table, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the exit statuses", path)
	}
	want := exitTable(t)
	if *update {
		testenv.Check(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	} else if table != want {
		t.Errorf("the exit statuses in %s are out of date; run: go test ./cmd/sendquota -run ExitStatus_Documented -update\ngot:\n%s\nwant:\n%s", path, table, want)
	}
}

// exitTable returns the table, with one row for all commands with the same exit statuses.
func exitTable(t *testing.T) string {
	t.Helper()
	var rows [][4]string
	commands := map[[4]string][]string{}
	for _, r := range commandRows {
		for _, status := range []int{r.setting, r.away, r.full} {
			if status >= 0 && r.means[status] == "" {
				t.Errorf("%s: it is not said what %d means", r.path, status)
			}
		}
		if commands[r.means] == nil {
			rows = append(rows, r.means)
		}
		commands[r.means] = append(commands[r.means], "`"+r.path+"`")
	}
	for _, path := range withoutData {
		commands[ofStore.means] = append(commands[ofStore.means], "`"+path+"`")
	}
	commands[ofStore.means] = append(commands[ofStore.means], "the programs `api` and `worker`")
	b := "\n  | command | 0 | 1 | 2 | 3 |\n  |---|---|---|---|---|\n"
	for _, means := range rows {
		for _, cell := range cells(commands[means]) {
			b += "  " + strings.ReplaceAll("| "+cell+" | "+strings.Join(means[:], " | ")+" |\n", "  |", " |")
		}
	}
	return b + "\n"
}

// cells joins names to cells of a table of up to 200 characters.
func cells(names []string) (all []string) {
	for _, name := range names {
		if last := len(all) - 1; last >= 0 && len(all[last])+len(name) < 200 {
			all[last] += ", " + name
		} else {
			all = append(all, name)
		}
	}
	return all
}

// TestCommands_ExitStatus runs every command with every kind of fault.
func TestCommands_ExitStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	testenv.Check(t, err)
	defer full.Close()
	b.faultyCommands(t)
	for _, row := range commandRows { // they change data, one after another
		if !testing.Short() {
			row.try(t, "full disk", row.full, b.env, full, row.line(b, row.args)...)
		}
		row.try(t, "full disk, JSON", row.full, b.env, full, append(row.line(b, row.args), "--json")...)
		if !testing.Short() {
			row.try(t, "done", 0, b.env, io.Discard, row.line(b, row.args)...)
		}
		var out strings.Builder
		row.try(t, "done, JSON", 0, b.env, &out, append(row.line(b, row.args), "--json")...)
		var object map[string]any
		if err := json.Unmarshal([]byte(out.String()), &object); err != nil || len(object) == 0 {
			t.Errorf("%s --json prints no JSON object: %v: %s", row.path, err, out.String())
		}
	}
}

// faultyCommands runs every command with the faults that change no data, several at a time, because most of them wait.
func (b *bench) faultyCommands(t *testing.T) {
	t.Helper()
	without := []string{}
	away := []string{"DATABASE_URL=postgres://127.0.0.1:1/x", "SENDQUOTA_API=http://127.0.0.1:1", "SENDQUOTA_API_KEY=sq_x"}
	var all errgroup.Group
	all.SetLimit(8)
	for _, row := range commandRows {
		try := func(kind string, want int, env []string, args ...string) {
			all.Go(func() error {
				row.try(t, kind, want, env, io.Discard, args...)
				return nil
			})
		}
		try("unknown flag", 2, b.env, append(row.line(b, row.args), "--nonsense")...)
		if row.setting >= 0 {
			try("missing setting", row.setting, without, row.line(b, row.args)...)
		}
		if row.away >= 0 {
			try("server away", row.away, away, row.line(b, row.args)...)
		}
		if row.missing != "" {
			want := row.away
			if want < 0 || strings.Contains(row.missing, "/no/such") {
				want = max(row.setting, 1) // a file that cannot be read is a fault before any server is asked
			}
			try("unknown name", want, b.env, row.line(b, row.missing)...)
		}
	}
	_ = all.Wait()
}

// line returns the command's line with these arguments.
func (r *commandRow) line(b *bench, args string) []string {
	return append(strings.Fields(r.path), b.words(args)...)
}

// try runs a command with a kind of fault, and checks its exit status.
func (r *commandRow) try(t *testing.T, kind string, want int, env []string, out io.Writer, args ...string) {
	t.Helper()
	said, status := tool(t, env, out, args...)
	if status != want {
		t.Errorf("%s, %s: exit status %d, want %d: %s", r.path, kind, status, want, said)
	}
	if status != 0 && said == "" {
		t.Errorf("%s, %s: says nothing", r.path, kind)
	}
}
