// Package bulkchange defines bulk changes: cancels and moves of all pushes that match a filter. It is pure: package bulk
// carries them out.
package bulkchange
