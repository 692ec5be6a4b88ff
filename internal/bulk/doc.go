// Package bulk cancels and moves all pushes that match a filter. A request only creates the change; the workers carry
// it out.
//
// First, page by page, they list the matching pushes that still wait and were submitted before the change, each with
// its current send time. Then they cancel or move each push as a single request would, through the quota: a few pushes
// concurrently, but the pushes of a recipient one after another. Outcomes are recorded after the fact. So after a crash
// some steps are repeated, which changes nothing: a repeated cancel finds the push canceled, and a repeated move, which
// names the old and the new send time, finds it moved.
package bulk
