package internal_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// numbers are the parts of documents that give the value of a constant: {store.chunkLines} is the number, in digits or as a word, and
// {quota.ttl m} is how many minutes the constant is.
var numbers = map[string][]string{
	"docs/architecture/deliver.md": {
		"All recipients are divided into {push.Shards} shards",
		"by a lease in the table `lanes`, for {upkeep.laneLease s} seconds,",
		"Until then, for {upkeep.searchAllEvery m} minutes at most,",
		"arms one wake-up for each moment and {upkeep.partSize} pushes",
		"If the delivery gate is shut for less than {booking.MaxWait s} seconds,",
		"unless {delivery.maxRecording} times as many as there are slots",
		"After {delivery.failuresToOpen} attempts in a row",
		"what a tenant has beyond its first {schedule.promptShare} pushes for one second is a burst",
		"more rarely, every {delivery.longestFeedPause s} seconds at last.",
		"| other workers take them after {upkeep.laneLease s} seconds |",
	},
	"docs/architecture/limits.md": {
		"| {store.MaxScanned} rows without a match, and about {store.MaxPageBytes MiB} MiB |",
		"| {store.singlesAlone} for one tenant; {store.singlesBeside} while several tenants book |",
		"| {store.ownTransactions}; {store.TenantTransactions} of one tenant while it is alone.",
		"(a simulation gives its turn back after {campaign.planTurn ms} ms)",
		"| forecasts of policies | {store.forecasts} at a time, one of one tenant, {httpapi/policies.forecastTime s} seconds each |",
		"| {schedule.mostShadows}, {schedule.tenantShadows} of one tenant |",
		"| {schedule.mostRefused}, {schedule.tenantRefused} of one tenant |",
		"| exports | {httpapi/lists.exportsAtOnce} at a time, {httpapi/lists.exportsPerSelf} of one tenant;",
		"| a page of {store.refitPage} pushes of one tenant,",
		"| memory of requests and answers | {rest.DefaultMemory MiB} MiB,",
		"| imports of recipients | {httpapi/recipients.importMemory MiB} MiB of the memory of large requests; transactions of {httpapi/recipients.importLines} lines,",
		"| simulations of campaigns | {httpapi/campaigns.simulationsAtOnce} at a time, {httpapi/campaigns.simulationsPerSelf} of one tenant; {httpapi/campaigns.simulationBytes MiB} MiB of",
		"transactions of {store.chunkLines} recipients, which hold no locks.",
		"slowly has {httpapi/lists.FirstBodyTime s} seconds, and one more for each {httpapi/lists.BytesASecond KiB} KiB |",
		"| uploads of audiences | {httpapi/campaigns.audienceMemory MiB} MiB of the memory of large requests; transactions of {campaign.uploadLines} lines,",
		"| Redis' time for `/v1/limits` | {app.tenantLimitsWork ms} ms under way,",
		"| queries for unknown API keys | {rest.maxLookups} at a time,",
		"the last {store.endedKeysKept} that have ended |",
		"`console.max_users_per_tenant`; {user.MaxSessions} sessions of each |",
		"| lookups of sessions of the console | {console.maxLookups} at a time, {console.addressesPart} from one address |",
		"| {console/frame.maxStreams}, {console/frame.maxTenantStreams} of one tenant |",
		"| passwords that are hashed | {user.hashesAtATime} at a time, with 19 MiB each, {user.hashesOfOne} of them for one address |",
		"| workers | what a tenant has beyond {schedule.promptShare} pushes for one second",
	},
	"docs/architecture/submit.md": {
		"around all send times, at most {store.sharedRows} of each recipient.",
		"or that has more than {store.sharedRows} bookings around,",
		"A tenant runs {store.TenantTransactions} of them at a time while it is alone",
		"where they expire {quota.ttl m} minutes later,",
		"what Idempotency-Keys have made in the last {store.KeyLifetime d} days |",
	},
	"docs/architecture/teams.md": {
		"A chunk is up to {store.chunkLines} recipients of one lane,",
		"was begun more than {recurring.lateLimit m} minutes ago counts as missed",
		"a pass takes up to {recurring.portion} schedules of up to {store.tenantsPerPass} tenants,",
		"are recorded in portions of {recurring.maxRuns} for each schedule.",
	},
	"docs/architecture/words.md": {
		"| shard, lane | one of {push.Shards} parts of all recipients",
		"| burst | a tenant's pushes beyond its first {schedule.promptShare} for one second",
	},
	"docs/console.md": {
		"A tenant has at most {console/frame.maxTenantStreams} such pages open in one process;",
		"half a minute, and a second more for each {httpapi/lists.BytesASecond KiB} KiB.",
		"{console/people.pushesOnAxis} pushes and {console/people.attemptsOnAxis} attempts at most,",
		"sets the password: once, within {user.LinkLifetime h} hours.",
		"Passwords have at least {user.MinPassword} characters,",
		"{user.hashesAtATime} at a time are computed, and {user.hashesOfOne} of them for one address.",
		"Each user has {user.MaxSessions} at most.",
	},
	"docs/guarantees.md": {"Within {store.KeyLifetime d} days the same Idempotency-Key"},
	"docs/policies.md":   {"kept for {app.shadowsKept d} days."},
	"docs/pushes.md": {
		"how many of the first {bulk.sampleSize} would be accepted,",
		"each may have {bulk.MaxRunning} under way.",
		"It can be read for {app.bulkKept d} days after its end.",
	},
	"docs/ratelimits.md": {
		"`key` names the subject: 1 to {httpapi/limits.maxLimitKey} printable bytes.",
		"`cost`: 1 to {httpapi/limits.maxCost},",
		"Calls of together at most {redisscript.MaxWeight} go in one pipeline.",
	},
	"docs/recipients.md": {
		"any id of 1 to {httpapi/pushes.MaxRecipient} printable bytes will do",
		"an object of at most {booking.MaxAttributes KiB} KiB.",
		"A line has at most {httpapi/lists.maxImportLine KiB} KiB.",
		"stored in transactions of up to {httpapi/recipients.importLines} lines,",
		"which pushes fill it (the first {httpapi/pushes.mostConflicts}).",
		"The last {quota.keptRefusals} refusals of a week",
		"has up to {schedule.MaxPast} pushes;",
	},
	"docs/records.md": {
		"the latest {store.failuresScanned} pushes of the time",
		"Refusals are stored every {schedule.flushPeriod s} seconds;",
		"adds the {stats.MostParts} largest `parts` of each hour (in up to {rest.MaxSplitHours d} days)",
		"that have reported in the last {store.viewsFresh s} seconds.",
		"With more than {store.flowAttempts} attempts in an hour",
		"values of changed members, to {store.maxDifference KiB} KiB;",
		"Every {upkeep.foldPeriod s} seconds one of the workers",
	},
	"docs/schedules.md": {"not submitted for {recurring.lateLimit m} minutes"},
	"docs/webhooks.md": {
		"An endpoint gets up to {notify.perWebhook} requests at a time,",
		"and {notify.leastFailures} times at least,",
		"For {notify.overlap h} hours each request bears two signatures",
		"(up to {notify.maxRetryAfter h} h)",
	},
}

var units = map[string]float64{
	"": 1, "ms": 1e6, "s": float64(time.Second), "m": float64(time.Minute), "h": float64(time.Hour), "d": 24 * float64(time.Hour), "KiB": 1 << 10, "MiB": 1 << 20,
}

var inWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen")

// TestDocs_Numbers holds the numbers in documents to the constants that they are about.
func TestDocs_Numbers(t *testing.T) {
	place := regexp.MustCompile(`\{([\w/]+)\.(\w+) ?(\w*)\}`)
	packages := map[string]map[string]ast.Expr{}
	for document, sentences := range numbers {
		text, err := os.ReadFile("../" + document)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.Join(strings.Fields(string(text)), " ")
		for _, sentence := range sentences {
			want, end := "(?i)", 0
			for _, at := range place.FindAllStringSubmatchIndex(sentence, -1) {
				folder, name, unit := sentence[at[2]:at[3]], sentence[at[4]:at[5]], sentence[at[6]:at[7]]
				if packages[folder] == nil {
					packages[folder] = constants(t, folder)
				}
				value := valueOf(t, packages[folder], packages[folder][name], folder+"."+name) / units[unit]
				want += regexp.QuoteMeta(sentence[end:at[0]]) + `(?:` + strings.Join(spellings(value), "|") + `)`
				end = at[1]
			}
			want += regexp.QuoteMeta(sentence[end:])
			if !regexp.MustCompile(want).MatchString(page) {
				t.Errorf("%s does not say %q with the values of the code:\n%s", document, sentence, want)
			}
		}
	}
}

// spellings are the ways in which documents write a number.
func spellings(value float64) []string {
	if value != math.Trunc(value) {
		return []string{regexp.QuoteMeta(strconv.FormatFloat(value, 'g', -1, 64))}
	}
	digits := strconv.Itoa(int(value))
	all := []string{digits}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if all = append(all, digits); int(value) < len(inWords) {
		all = append(all, inWords[int(value)])
	}
	return all
}

// constants are those of a package of internal, by their names.
func constants(t *testing.T, folder string) map[string]ast.Expr {
	t.Helper()
	var files []string
	for _, pattern := range []string{"/*.go", "/*/*.go"} { // the store has a folder for each subject
		found, err := filepath.Glob(folder + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("internal/%s has no files", folder)
	}
	all := map[string]ast.Expr{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			of, is := decl.(*ast.GenDecl)
			if !is || of.Tok != token.CONST {
				continue
			}
			for _, spec := range of.Specs {
				for i, value := range spec.(*ast.ValueSpec).Values {
					all[spec.(*ast.ValueSpec).Names[i].Name] = value
				}
			}
		}
	}
	return all
}

// valueOf is the value of an expression of constants of a package and of the units of time.
func valueOf(t *testing.T, of map[string]ast.Expr, x ast.Expr, name string) float64 {
	t.Helper()
	clock := map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}
	switch x := x.(type) {
	case *ast.BasicLit:
		value, _ := constant.Float64Val(constant.ToFloat(constant.MakeFromLiteral(x.Value, x.Kind, 0)))
		return value
	case *ast.ParenExpr:
		return valueOf(t, of, x.X, name)
	case *ast.Ident:
		return valueOf(t, of, of[x.Name], name)
	case *ast.SelectorExpr:
		if unit, known := clock[x.Sel.Name]; known {
			return float64(unit)
		}
	case *ast.BinaryExpr:
		a, b := valueOf(t, of, x.X, name), valueOf(t, of, x.Y, name)
		switch x.Op {
		case token.ADD:
			return a + b
		case token.SUB:
			return a - b
		case token.MUL:
			return a * b
		case token.QUO:
			return a / b
		case token.SHL:
			return a * math.Pow(2, b)
		}
	}
	t.Fatalf("there is no constant %s whose value this test can read", name)
	return 0
}

// TestDocs_Loops: docs/architecture.md lists as many loops of a worker as worker starts.
func TestDocs_Loops(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	_, list, found := strings.Cut(page, "builds a worker and lists its loops: ")
	list, _, ended := strings.Cut(list, ".")
	if !found || !ended {
		t.Fatal("docs/architecture.md does not list the loops of a worker")
	}
	named := strings.Split(list, ", ")
	if started := loopsOfWorker(t); len(named) != started {
		t.Errorf("docs/architecture.md lists %d loops of a worker, and it starts %d: %q", len(named), started, named)
	}
	slices.Sort(named)
	if len(slices.Compact(named)) != len(strings.Split(list, ", ")) {
		t.Errorf("docs/architecture.md lists a loop twice: %s", list)
	}
}

// loopsOfWorker counts what worker puts into loops.
func loopsOfWorker(t *testing.T) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "app/worker.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.CompositeLit:
			if list, is := x.Type.(*ast.ArrayType); is {
				if _, functions := list.Elt.(*ast.FuncType); functions {
					n += len(x.Elts)
				}
			}
		case *ast.CallExpr:
			if to, is := x.Fun.(*ast.Ident); is && to.Name == "append" {
				n += len(x.Args) - 1
			}
		}
		return true
	})
	return n
}
