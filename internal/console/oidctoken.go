package console

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/sendquota/sendquota/internal/user"
)

// claims are the claims of an id token.
type claims struct {
	Email     string `json:"email"`
	Verified  any    `json:"email_verified"` // some providers write it as a text
	Name      string `json:"name"`
	Preferred string `json:"preferred_username"`
	Party     string `json:"azp"` // the client that the token was issued to
}

// whoIs gets and checks the id token for a code.
func (v *provider) whoIs(ctx context.Context, code string, a away) (e user.External, err error) {
	config, known, err := v.client(ctx)
	if err != nil {
		return e, err
	}
	token, err := config.Exchange(v.context(ctx), code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) {
			return e, fmt.Errorf("exchange the code: status %d, %s", refused.Response.StatusCode, user.TrimName(refused.ErrorCode)) // its body may have anything
		}
		return e, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := known.Verifier(&oidc.Config{ClientID: v.cfg.ClientID}).Verify(v.context(ctx), raw)
	if err != nil {
		return e, fmt.Errorf("verify the id token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(a.Nonce)) != 1 {
		return e, errors.New("the id token belongs to another sign-in: its nonce differs")
	}
	var (
		c   claims
		all map[string]any
	)
	if err := errors.Join(id.Claims(&c), id.Claims(&all)); err != nil {
		return e, fmt.Errorf("read the id token: %w", err)
	}
	if err := v.check(id, c); err != nil {
		return e, err
	}
	return v.external(id, c, all[v.cfg.GroupsClaim])
}

// maxSubject is the maximum length of a subject, in ASCII characters.
const maxSubject = 255

// check refuses what the library lets pass, and OpenID Connect Core does not (sections 2 and 3.1.3.7).
func (v *provider) check(id *oidc.IDToken, c claims) error {
	switch {
	case id.Subject == "" || len(id.Subject) > maxSubject || strings.ContainsFunc(id.Subject, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("the id token has no sub of 1 to 255 ASCII characters")
	case len(id.Audience) > 1 && c.Party == "":
		return errors.New("the id token has several audiences, and no azp")
	case c.Party != "" && c.Party != v.cfg.ClientID:
		return errors.New("the id token was issued to another client: its azp is not client_id")
	}
	return nil
}

// verified reports whether an address is known to be the user's. The standard takes an address as unverified unless email_verified is true; some
// providers leave the claim out.
func (v *provider) verified(claim any) bool {
	return claim == true || claim == "true" || claim == nil && v.cfg.TrustEmail
}

// external is the user whom an id token means.
func (v *provider) external(id *oidc.IDToken, c claims, groups any) (e user.External, err error) {
	email, wrong := user.CleanEmail(c.Email)
	if wrong != "" {
		return e, unfitError("Your company's sign-in does not send your e-mail address")
	}
	role := v.role(groups)
	if role == "" {
		return e, unfitError("None of your groups can sign in here. Ask an admin of your team")
	}
	return user.External{
		Issuer: id.Issuer, Subject: id.Subject, Email: email, EmailVerified: v.verified(c.Verified), Name: user.TrimName(cmp.Or(c.Name, c.Preferred)), Role: role,
	}, nil
}

// role is the mightiest role of a user's groups: a list of names, or one name.
func (v *provider) role(groups any) (role user.Role) {
	list, ok := groups.([]any)
	if !ok {
		list = []any{groups}
	}
	for group, its := range v.cfg.Roles {
		if slices.Contains(list, any(group)) {
			role = user.Higher(role, its)
		}
	}
	return role
}
