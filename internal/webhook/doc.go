// Package webhook defines the webhooks of tenants: the events that they receive, and the deliveries of these events. It is
// pure: package notify sends the deliveries.
package webhook
