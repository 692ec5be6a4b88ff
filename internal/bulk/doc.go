// Package bulk cancels and moves all pushes that match a filter. A request only creates the change; the workers carry
// it out.
//
// First, page by page, they list the pushes that matched when the change was made. Transactions that move pushes before the
// list is complete add them with their old send times, so that a move takes no push out of the change, and brings none
// into it. Then the workers cancel or move each push as a single request would, through the quota: a few pushes
// concurrently, but the pushes of a recipient one after another. Outcomes are recorded after the fact. So after a crash
// some steps are repeated, which changes nothing: a repeated cancel finds the push canceled, and a repeated move, which
// names the old and the new send time, finds it moved.
//
// A cancel marks a push that is being sent, and returns to it. The mark lets no other attempt begin.
package bulk
