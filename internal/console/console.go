package console

import (
	"embed"
	"net/http"
	"sync"

	"github.com/sendquota/sendquota/internal/console/activity"
	"github.com/sendquota/sendquota/internal/console/calendar"
	"github.com/sendquota/sendquota/internal/console/campaigns"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/console/people"
	"github.com/sendquota/sendquota/internal/console/system"
)

// New returns the console in front of an API that serves /v1.
func New(api http.Handler, auth frame.Authenticator, cfg frame.Config) http.Handler {
	return frame.New(api, auth, allScreens(), menu, cfg).Handler()
}

// rooms are the parts of the console. [SignIn] adds the pages of the first one.
var rooms = []frame.Room{{Templates: templates}, campaigns.Room, calendar.Room, people.Room, activity.Room, system.Room}

//go:embed templates
var templates embed.FS

// allScreens parses the templates once for all consoles of a process.
var allScreens = sync.OnceValue(func() *frame.Screens { return frame.NewScreens(newAssets(), rooms) })
