package booking

import (
	"time"

	"github.com/google/uuid"
)

// AuditPlan is the scope and the frequency of the workers' audit.
type AuditPlan struct {
	Policy Terms         // of tenants without a policy of their own
	Every  time.Duration // minimum time from the start of a pass to the start of the next
	Back   time.Duration // every pass covers pushes with a send time this long ago, until they can no longer change
	Ahead  time.Duration // every pass covers pushes with a send time this far ahead
	Kept   Kept
}

// Kept holds the retention periods. Whatever ended longer ago may be deleted, without being a violation. Zero: forever.
type Kept struct {
	Pushes time.Duration // from their end
	Sends  time.Duration // from the start of the attempt
	Log    time.Duration // the audit log
}

// AuditChunk describes one chunk of an audit.
type AuditChunk struct {
	Rows    int
	Took    time.Duration
	TooLong bool      // it was given up, and the next one is half as large
	Skipped uuid.UUID // a push of a recipient that takes too long even alone, so that it was not audited; or nil
}

// AuditResult is the result of a pass of the workers' audit.
type AuditResult struct {
	Began, Ended time.Time                // by Postgres' clock
	Busy         time.Duration            // the part of the time that was spent reading
	Found        map[string]*AuditFinding // by check, without checks that found nothing
}

// Audit is a finished pass of the workers' audit, as a tenant sees it.
type Audit struct {
	Began, Ended time.Time
	Found        map[string]*AuditFinding // of the tenant, by check, without checks that found nothing
	Complete     bool                     // false: too many tenants were affected to list them all
}

// AuditPage is a page of audits. Next is the start of the last one if there are more.
type AuditPage struct {
	Audits []Audit
	Next   time.Time // zero: there are no more
}

// AuditFinding holds the violations that one check found.
type AuditFinding struct {
	Violations int
	Pushes     []uuid.UUID // of the first ten
}
