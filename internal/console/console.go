package console

import (
	"net/http"
	"sync"

	"github.com/sendquota/sendquota/internal/console/activity"

	"github.com/sendquota/sendquota/internal/console/people"

	"github.com/sendquota/sendquota/internal/console/calendar"

	"github.com/sendquota/sendquota/internal/console/campaigns"

	"github.com/sendquota/sendquota/internal/console/frame"
)

// New returns the console in front of an API that serves /v1.
func New(api http.Handler, auth frame.Authenticator, cfg frame.Config) http.Handler {
	return frame.New(api, auth, allScreens(), menu, cfg).Handler()
}

// rooms are the parts of the console. Each has its pages and their templates.
var rooms = []frame.Room{signInRoom, campaigns.Room, calendar.Room, people.Room, activity.Room, systemRoom}

// allScreens are parsed once, for all consoles of a process.
var allScreens = sync.OnceValue(func() *frame.Screens { return frame.NewScreens(newAssets(), rooms) })
