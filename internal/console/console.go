package console

import (
	"net/http"
	"sync"
)

// New returns the console in front of an API that serves /v1.
func New(api http.Handler, auth authenticator, cfg Config) http.Handler {
	return newSite(api, auth, allScreens(), menu, cfg).Handler()
}

// rooms are the parts of the console. Each has its pages and their templates.
var rooms = []room{signInRoom, campaignsRoom, calendarRoom, peopleRoom, activityRoom, systemRoom}

// allScreens are parsed once, for all consoles of a process.
var allScreens = sync.OnceValue(func() *screens { return newScreens(newAssets(), rooms) })
