// Package broadcast defines campaigns, which send one message to all recipients of an audience: their states, actions and
// phases, and the outcomes of their recipients. It is pure: package campaign runs campaigns.
package broadcast
