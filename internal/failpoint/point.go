// Package failpoint names the points where a process can be made to die or to freeze. Chaos tests use them to prove
// that the guarantees hold at any instruction.
//
// They exist only in programs built with the tag "failpoint", as `make chaos` builds them. In any other program a point
// is nothing, and the environment cannot change that. In a program built with the tag, the environment plans one fault:
//
//	FAILPOINT=kill@claim.committed:2   die by SIGKILL at the second claim.committed
//	FAILPOINT=stop@send.written:1      freeze by SIGSTOP there, until SIGCONT
package failpoint

// Point is a place in the code, named after what was just done or is under way.
type Point string

// The points, in the order of a push's life. At "committing" the statements
// and the commit are on their way to Postgres, and no answer has been read.
const (
	SubmitReserved  Point = "submit.reserved"  // the cache has booked, Postgres not
	BookLocked      Point = "book.locked"      // decided, under the locks
	BookCommitting  Point = "book.committing"  //
	BookCommitted   Point = "book.committed"   // the cache does not know
	SubmitCached    Point = "submit.cached"    // the cache knows, the queue not
	SubmitArmed     Point = "submit.armed"     // the caller does not know, and the queue perhaps
	BatchCommitted  Point = "batch.committed"  // the cache does not know
	CancelCommitted Point = "cancel.committed" // the cache does not know
	MoveLocked      Point = "move.locked"      //
	MoveCommitting  Point = "move.committing"  //
	MoveCommitted   Point = "move.committed"   // neither cache nor queue know
	PromoteArmed    Point = "promote.armed"    // in the queue, not noted
	PromoteDone     Point = "promote.done"     //
	ClaimLocked     Point = "claim.locked"     // decided, under the locks
	ClaimCommitting Point = "claim.committing" //
	ClaimCommitted  Point = "claim.committed"  // nothing is sent
	SendWritten     Point = "send.written"     // the provider has the request
	SendAnswered    Point = "send.answered"    // not recorded
	FinishWriting   Point = "finish.writing"   // on its way to Postgres
	FinishCommitted Point = "finish.committed" // the cache and the queue do not know
	ReapFound       Point = "reap.found"       //
	ReapDone        Point = "reap.done"        //
	ExpireCommitted Point = "expire.committed" // the cache does not know

	OccurrenceLocked    Point = "occurrence.locked"    // of a schedule: decided, under its lock
	OccurrenceWritten   Point = "occurrence.written"   // not committed
	OccurrenceBegun     Point = "occurrence.begun"     // on record as begun, and not submitted
	OccurrenceSubmitted Point = "occurrence.submitted" // and not on record
	OccurrenceRecorded  Point = "occurrence.recorded"  // written, and not committed
	OccurrenceDone      Point = "occurrence.done"      //

	CampaignActed    Point = "campaign.acted"    // started, paused, resumed or canceled, and not committed
	CampaignDecided  Point = "campaign.decided"  // recipients of a chunk, under the locks
	ChunkCommitting  Point = "chunk.committing"  //
	ChunkCommitted   Point = "chunk.committed"   // neither cache nor queue know
	CampaignBooked   Point = "campaign.booked"   // all recipients are decided, and the campaign is not running
	CampaignParked   Point = "campaign.parked"   // some pushes of one that is paused, not committed
	CampaignUnparked Point = "campaign.unparked" // some pushes of one that goes on, and the queue does not know
	CampaignWithdrew Point = "campaign.withdrew" // some pushes of one that is canceled; the cache does not know
	CampaignSettled  Point = "campaign.settled"  // told, or ended, and not committed

	BulkListed  Point = "bulk.listed"  // pushes of a bulk change, not committed
	BulkChanged Point = "bulk.changed" // pushes of a step, and not on record
	BulkNoted   Point = "bulk.noted"   // on record, and not committed
	BulkEnded   Point = "bulk.ended"   // not committed

	PauseCreated  Point = "pause.created"  // not committed
	PauseDeleted  Point = "pause.deleted"  // not committed
	PauseUnparked Point = "pause.unparked" // some pushes of one that has ended, and the queue does not know

	SuppressionStored Point = "suppression.stored" // its pushes are not canceled, not committed

	ChannelLocked Point = "channel.locked" // of a tenant: changed or marked for deletion, and not committed

	LanesOwned        Point = "lanes.owned"        // by the worker, which does not know
	PartitionsMade    Point = "partitions.made"    // ahead, some of a table, and not the next ones
	PartitionMarked   Point = "partition.marked"   // to be dropped, and in use
	PartitionDetached Point = "partition.detached" // and there
	PartitionDropped  Point = "partition.dropped"  // and the programs do not know
	AuditSaved        Point = "audit.saved"        // how far a pass is, which the worker still has
	AuditEnded        Point = "audit.ended"        // a pass: its hours are closed
)

// Points lists all points.
var Points = []Point{
	SubmitReserved, BookLocked, BookCommitting, BookCommitted, SubmitCached, SubmitArmed, BatchCommitted,
	CancelCommitted, MoveLocked, MoveCommitting, MoveCommitted, PromoteArmed, PromoteDone,
	ClaimLocked, ClaimCommitting, ClaimCommitted, SendWritten, SendAnswered, FinishWriting, FinishCommitted,
	ReapFound, ReapDone, ExpireCommitted,
	OccurrenceLocked, OccurrenceWritten, OccurrenceBegun, OccurrenceSubmitted, OccurrenceRecorded, OccurrenceDone,
	CampaignActed, CampaignDecided, ChunkCommitting, ChunkCommitted, CampaignBooked, CampaignParked, CampaignUnparked, CampaignWithdrew, CampaignSettled,
	BulkListed, BulkChanged, BulkNoted, BulkEnded,
	PauseCreated, PauseDeleted, PauseUnparked, SuppressionStored,
	ChannelLocked, LanesOwned, PartitionsMade, PartitionMarked, PartitionDetached, PartitionDropped, AuditSaved, AuditEnded,
}
