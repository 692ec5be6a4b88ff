package booking

import (
	"time"

	"github.com/google/uuid"
)

// AuditPlan says what the workers audit, and how often.
type AuditPlan struct {
	Policy Terms         // of tenants without a policy of their own
	Every  time.Duration // from the beginning of a pass to that of the next, at least
	Back   time.Duration // what was to be sent so long ago is audited in every pass, until nothing can change it any more
	Ahead  time.Duration // what is to be sent so soon is audited in every pass
	Kept   Kept
}

// Kept says for how long what has ended is kept. What ended longer ago may be gone, without that being a violation. Zero: for
// ever.
type Kept struct {
	Pushes time.Duration // from their end
	Sends  time.Duration // from when the attempt began
	Log    time.Duration // the audit log
}

// AuditChunk tells what a chunk of an audit was.
type AuditChunk struct {
	Rows    int
	Took    time.Duration
	TooLong bool      // it was given up, and the next one is half as large
	Skipped uuid.UUID // a push of a recipient who takes too long even alone, so that it was not audited; or nil
}

// AuditResult is what a pass of the workers' audit has found.
type AuditResult struct {
	Began, Ended time.Time                // by Postgres' clock
	Busy         time.Duration            // for so much of the time it read
	Found        map[string]*AuditFinding // by check; those that found nothing are left out
}

// Audit is a pass of the workers' audit that has ended, as a tenant sees it.
type Audit struct {
	Began, Ended time.Time
	Found        map[string]*AuditFinding // of the tenant, by check; those that found nothing are left out
	Complete     bool                     // else so many tenants were concerned that some may not be told
}

// AuditPage is a page of audits, and when the last of them began if there are more.
type AuditPage struct {
	Audits []Audit
	Next   time.Time // zero: there are no more
}

// AuditFinding are the violations of one check.
type AuditFinding struct {
	Violations int
	Pushes     []uuid.UUID // of the first ten
}
