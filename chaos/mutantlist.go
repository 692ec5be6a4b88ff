package main

// mutant is a wrong version of the programs, without one check that the guarantees depend on. In its story only that
// check prevents too many pushes, or lost ones. With the mutant the story must break a guarantee, and be noticed; with
// the unchanged code it must not.
type mutant struct {
	name      string
	program   string // api or worker
	breaks    string
	mutations []mutation
	story     func(b *bundle, c *caller)
	evidence  []string // the checks that must each find it
}

// mutation replaces a text that occurs once in a file of the module.
type mutation struct{ file, old, new string }

var allMutants = []mutant{{
	name:    "booking",
	program: "api",
	breaks:  "a submit is not tested against the bookings in Postgres",
	mutations: []mutation{
		{"internal/booking/decider.go", "at, outcome := d.freeTime(policy, view)", "at, outcome := d.Push.SendAt, Booked"},
	},
	story:    flushedCache,
	evidence: []string{"I2 promised", "promised-window"},
}, {
	name:    "reschedule",
	program: "api",
	breaks:  "a move is not tested against the bookings in Postgres",
	mutations: []mutation{
		{"internal/booking/decider.go", "to, outcome := d.freeTime(policy, view)", "to, outcome := d.Push.SendAt, Booked"},
	},
	story:    crowdedMove,
	evidence: []string{"I2 promised", "promised-window"},
}, {
	name:    "delivery",
	program: "worker",
	breaks:  "a claim is not tested against the recipient's actual sends",
	mutations: []mutation{
		{"internal/booking/claim.go", "policy.Next(quota.NewTimeline(s.Sends), now, 0)", "policy.Next(quota.NewTimeline(nil), now, 0)"},
	},
	story:    heldUpWorker,
	evidence: []string{"I2 actual", "actual-window"},
}, {
	name:    "in-flight",
	program: "worker",
	breaks:  "a recipient may have two attempts at a time",
	mutations: []mutation{
		{"internal/booking/claim.go", "s.Due.ID == uuid.Nil || len(s.InFlight) > 0 {", "s.Due.ID == uuid.Nil {"},
	},
	story:    slowProvider,
	evidence: []string{"overlap"},
}, {
	name:    "confirm",
	program: "api",
	breaks:  "Postgres does not confirm what the cache refuses",
	mutations: []mutation{
		{"internal/schedule/submit.go", "if decision.Allowed() || policy.Defers(at) {", "if false {"},
	},
	story:    deafRedis,
	evidence: []string{"no order"},
}, {
	name:    "terms",
	program: "api",
	breaks:  "a booking does not look whether the policy that the process knows is still in force",
	mutations: []mutation{
		{"internal/store/terms/terms.go", "found.Version != used.Version || found.Paused", "found.Version < used.Version || found.Paused"},
	},
	story:    changedPolicy,
	evidence: []string{"terms"},
}, {
	name:    "opt-outs",
	program: "worker",
	breaks:  "a claim does not look whether the recipient has opted out",
	mutations: []mutation{
		{"internal/booking/claim.go", "case s.Person.OptOuts.Of(kind).Any(), c.Push.Recipient", "case c.Push.Recipient"},
	},
	story:    secondThoughts,
	evidence: []string{"terms"},
}, {
	name:    "pauses",
	program: "worker",
	breaks:  "a claim does not look whether sending is paused",
	mutations: []mutation{
		{"internal/booking/claim.go", "if s.Pause != nil && now.Before(c.Push.ExpiresAt) {", "if false {"},
	},
	story:    stoppedSending,
	evidence: []string{"I10"},
}, {
	name:    "suppressed",
	program: "worker",
	breaks:  "a claim does not look whether the address is suppressed",
	mutations: []mutation{
		{"internal/booking/claim.go", "case s.Suppressed != nil:", "case false:"},
	},
	story:    uncanceled,
	evidence: []string{"suppressed"},
}, {
	name:    "own-channel",
	program: "worker",
	breaks:  "a push for a tenant's channel goes through the operator's of the same name",
	mutations: []mutation{
		{"internal/ownchannels/directory.go", "if version == 0 && !limited {", "if !limited {"},
	},
	story:    changedChannels,
	evidence: []string{"I11"},
}, {
	name:      "rearm-poll",
	program:   "worker",
	breaks:    "a lane that was armed and not swept is neither armed again nor polled",
	mutations: append([]mutation{noRearming}, noPolling...),
	story:     flushedQueue,
	evidence:  []string{"still scheduled"},
}, {
	name:      "poll",
	program:   "worker",
	breaks:    "workers poll no lanes without Redis, and no overdue lanes",
	mutations: noPolling,
	story:     frozenRedis,
	evidence:  []string{"still scheduled"},
}, {
	name:    "occurrence",
	program: "worker",
	breaks:  "an occurrence that is submitted again is another push",
	mutations: []mutation{
		{"internal/recurring/runner.go", "o.Schedule.ID, o.At.Unix())", "o.Schedule.ID, time.Now().UnixNano())"},
	},
	story:    dyingSubmit,
	evidence: []string{"not accepted to any caller"},
}}

// noRearming arms each due push only once.
var noRearming = mutation{"internal/upkeep/promote.go", "if late := p.late(ahead); late > overdue {", "if late := p.late(ahead); late < 0 {"}

var noPolling = []mutation{
	{"internal/upkeep/promote.go", "late > p.cfg.ArmLease {", "late < 0 {"},
	{"internal/upkeep/poll.go", "if away < p.cfg.Patience {", "if away >= 0 {"},
}
