// Package channelhealth decides from the outcomes of attempts whether a channel works, and defines what workers and tenants
// see of it. It is pure.
package channelhealth
