// Package bulk cancels and moves all pushes that fit a filter. A request only makes the change; the workers carry it out.
//
// First the pushes that fit, wait, and were submitted before the change are listed, each with the send time that it has: a page in a
// transaction. Then each of them is canceled or moved, through the quota, as a request for it alone would: a few at the same time, those
// of one recipient one after another. What was decided is noted after it was done; so after a crash some of it is done again, which
// changes nothing: a cancel finds the push canceled, and a move, which names the time that the push had and the one that it is to have,
// finds it moved.
package bulk
