package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// passwordView is the form of a link.
type passwordView struct{ Email string }

// deadLink is what is said of a link that opens nothing.
var deadLink = &client.Problem{Title: "This link no longer works", Status: http.StatusNotFound,
	Detail: "It was used, is older than a day, or was replaced by a newer one. Ask an admin of your team for a new link"}

// linkOf reads the token of the path, and whose it is. It does not use the link up.
func (s *SignIn) linkOf(p *page) (link [32]byte, u user.User, err error) {
	look, err := s.chargeAddress(p, "links of address", linkLimit)
	if err != nil {
		return link, u, err
	}
	link = user.HashLink(p.param("token"))
	if u, err = s.store.UserByLink(p.ctx(), link); errors.Is(err, push.ErrNotFound) {
		return link, u, deadLink
	}
	s.giveBack(p, look)
	return link, u, err
}

func (s *SignIn) passwordForm(p *page) error {
	_, u, err := s.linkOf(p)
	if err != nil {
		return err
	}
	return p.show("setpassword", "Choose a password", passwordView{u.Email})
}

func (s *SignIn) setPassword(p *page) error {
	link, u, err := s.linkOf(p)
	if err != nil {
		return err
	}
	password := p.r.PostForm.Get("password")
	var bad faults
	if wrong := user.CheckPassword(password, u.Email, u.Name); wrong != "" {
		bad.add("password", errors.New(wrong))
	}
	if password != p.r.PostForm.Get("again") {
		bad.add("again", errors.New("the passwords do not match"))
	}
	if err := bad.problem(); err != nil {
		return p.again(err, "setpassword", "Choose a password", passwordView{u.Email})
	}
	ctx, cancel := context.WithTimeout(p.ctx(), patience)
	defer cancel()
	secret, err := s.store.Secret(ctx)
	if err != nil {
		return err
	}
	phc, err := s.passwords.Hash(ctx, s.cfg.Address(p.r), user.SaltOf(secret, u.Email), password)
	if err != nil {
		return err
	}
	if _, err := s.store.SetPassword(p.ctx(), link, phc); errors.Is(err, push.ErrNotFound) {
		return deadLink
	} else if err != nil {
		return err
	}
	s.cfg.Log.InfoContext(p.ctx(), "password set", "tenant", u.Tenant, "user", u.ID)
	return p.done("Your password is set. Sign in with it.", signInPath+"?team="+url.QueryEscape(u.TenantName))
}
