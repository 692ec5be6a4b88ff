// Package apikey defines API keys: their states, their creation and rotation, and the errors of both. It is pure. The
// scopes of keys are in package push, because users of the console have them too.
package apikey
