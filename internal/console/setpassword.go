package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// passwordView is the form of a link.
type passwordView struct{ Email string }

// deadLink is the problem for a link that no longer works.
var deadLink = &client.Problem{Title: "This link no longer works", Status: http.StatusNotFound,
	Detail: "It was used, is older than a day, or was replaced by a newer one. Ask an admin of your team for a new link"}

// linkOf returns the token of the path and its user. It does not use the link up.
func (s *SignIn) linkOf(p *frame.Page) (link [32]byte, u user.User, err error) {
	look, err := s.chargeAddress(p, "links of address", linkLimit)
	if err != nil {
		return link, u, err
	}
	link = user.HashLink(p.Param("token"))
	if u, err = s.store.UserByLink(p.Context(), link); errors.Is(err, push.ErrNotFound) {
		return link, u, deadLink
	}
	s.giveBack(p, look)
	return link, u, err
}

func (s *SignIn) passwordForm(p *frame.Page) error {
	_, u, err := s.linkOf(p)
	if err != nil {
		return err
	}
	return p.Show("setpassword", "Choose a password", passwordView{u.Email})
}

func (s *SignIn) setPassword(p *frame.Page) error {
	link, u, err := s.linkOf(p)
	if err != nil {
		return err
	}
	password := p.Request.PostForm.Get("password")
	var bad frame.Faults
	if wrong := user.CheckPassword(password, u.Email, u.Name); wrong != "" {
		bad.Add("password", errors.New(wrong))
	}
	if password != p.Request.PostForm.Get("again") {
		bad.Add("again", errors.New("the passwords do not match"))
	}
	if err := bad.Problem(); err != nil {
		return p.ShowAgain(err, "setpassword", "Choose a password", passwordView{u.Email})
	}
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	secret, err := s.store.Secret(ctx)
	if err != nil {
		return err
	}
	phc, err := s.passwords.Hash(ctx, s.cfg.Address(p.Request), user.SaltOf(secret, u.Email), password)
	if err != nil {
		return err
	}
	if _, err := s.store.SetPassword(p.Context(), link, phc); errors.Is(err, push.ErrNotFound) {
		return deadLink
	} else if err != nil {
		return err
	}
	s.cfg.Log.InfoContext(p.Context(), "password set", "tenant", u.Tenant, "user", u.ID)
	return p.Done("Your password is set. Sign in with it.", frame.SignInPath+"?team="+url.QueryEscape(u.TenantName))
}
