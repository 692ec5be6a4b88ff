// Package ownchannels finds the channel of a name for a tenant, and changes, tests and deletes the channels that tenants make. A
// tenant's channel hides the operator's channel of the same name. Its pushes never go through the operator's channel, not even
// while it is disabled or cannot be opened.
package ownchannels
