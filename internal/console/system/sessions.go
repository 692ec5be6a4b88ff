package system

import (
	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// showMySessions shows where the user who looks is signed in.
func showMySessions(p *frame.Page) error {
	all, err := p.API.Users.ListSessions(p.Context(), p.Visitor.Caller.User.String())
	if err != nil {
		return err
	}
	return p.Show("settingssessions", "My sessions", all.Sessions)
}

// endMySessions signs the user who asks out, in one browser or in all.
func endMySessions(p *frame.Page) error {
	var (
		me     = p.Visitor.Caller.User.String()
		notice string
		err    error
	)
	if p.Field("do") == "end-all" {
		notice, err = endSessions(p, me)
	} else {
		notice, err = endSession(p, me, p.Field("session"))
	}
	if err != nil {
		return err
	}
	return p.Done(notice, p.Link("/settings/sessions"))
}

func endSession(p *frame.Page, of, session string) (notice string, err error) {
	return "That browser is signed out.", p.API.Users.EndSession(p.Context(), of, session)
}

func endSessions(p *frame.Page, of string) (notice string, err error) {
	n, err := p.API.Users.EndSessions(p.Context(), of)
	if n.Ended == 1 {
		return "Signed out in 1 browser.", err
	}
	return "Signed out in " + frame.Number(n.Ended) + " browsers.", err
}

// thisBrowser reports whether a session is the one of this page.
func thisBrowser(p *frame.Page, s client.Session) bool { return s.ID == p.Visitor.Session.String() }
