package failpoint

// Point is a place in the code, named after what was just done or is under way.
type Point string

// The points, in the order of a push's life. At "committing" the statements
// and the commit are on their way to Postgres, and no answer has been read.
const (
	SubmitReserved  Point = "submit.reserved"  // the cache has booked, Postgres not
	BookLocked      Point = "book.locked"      // judged, under the locks
	BookCommitting  Point = "book.committing"  //
	BookCommitted   Point = "book.committed"   // the cache does not know
	SubmitTold      Point = "submit.told"      // the cache knows, the queue not
	SubmitArmed     Point = "submit.armed"     // the caller does not know
	BatchCommitted  Point = "batch.committed"  // the cache does not know
	CancelCommitted Point = "cancel.committed" // the cache does not know
	MoveLocked      Point = "move.locked"      //
	MoveCommitting  Point = "move.committing"  //
	MoveCommitted   Point = "move.committed"   // neither cache nor queue know
	PromoteArmed    Point = "promote.armed"    // in the queue, not committed
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
)

// Points lists all points.
var Points = []Point{
	SubmitReserved, BookLocked, BookCommitting, BookCommitted, SubmitTold, SubmitArmed, BatchCommitted,
	CancelCommitted, MoveLocked, MoveCommitting, MoveCommitted, PromoteArmed, PromoteDone,
	ClaimLocked, ClaimCommitting, ClaimCommitted, SendWritten, SendAnswered, FinishWriting, FinishCommitted,
	ReapFound, ReapDone, ExpireCommitted,
}
