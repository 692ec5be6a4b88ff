package console

import "github.com/sendquota/sendquota/client"

// showMySessions shows where the user who looks is signed in.
func showMySessions(p *page) error {
	all, err := p.api.Users.ListSessions(p.ctx(), p.Visitor.Caller.User.String())
	if err != nil {
		return err
	}
	return p.show("settingssessions", "My sessions", all.Sessions)
}

// endMySessions signs the user who asks out, in one browser or in all.
func endMySessions(p *page) error {
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
	return p.done(notice, p.Link("/settings/sessions"))
}

func endSession(p *page, of, session string) (notice string, err error) {
	return "That browser is signed out.", p.api.Users.EndSession(p.ctx(), of, session)
}

func endSessions(p *page, of string) (notice string, err error) {
	n, err := p.api.Users.EndSessions(p.ctx(), of)
	if n.Ended == 1 {
		return "Signed out in 1 browser.", err
	}
	return "Signed out in " + number(n.Ended) + " browsers.", err
}

// thisBrowser reports whether a session is the one of this page.
func thisBrowser(p *page, s client.Session) bool { return s.ID == p.Visitor.Session.String() }
