// Package stats defines the numbers of a tenant's pushes: statistics by time, channel, category, level, campaign or rule, forecasts of
// what is booked, the flow of the last hour, and groups of failures. It is pure.
package stats
