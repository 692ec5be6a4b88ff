// Package people has the pages of recipients, and of the question why someone did not get a message.
package people

import (
	"embed"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

//go:embed templates
var templates embed.FS

// Section has the pages of recipients, and why someone did not get a message.
var Section = frame.Section{
	Templates: templates,
	Routes:    peopleRoutes,
}

// peopleRoutes adds the pages of recipients.
func peopleRoutes(r frame.Routes) {
	r.Get("/recipients", push.ScopeQuota, showRecipients)
	r.Get("/recipients/{id}", push.ScopeQuota, showRecipient)
	r.Get("/recipients/{id}/free", push.ScopeQuota, freeWithout)
	r.Get("/recipients/{id}/submit", "", frame.BackTo("/recipients/{id}"))
	r.Long("/recipients/{id}/submit", push.ScopeWrite, submitPush)
	for name, h := range map[string]frame.Handler{"move": movePush, "cancel": cancelOnAxis} {
		r.Form("/recipients/{id}/"+name, "/recipients/{id}", push.ScopeWrite, h)
	}

	r.Get("/why", push.ScopeQuota, showWhy)
	r.Get("/why/book", "", frame.BackTo("/why"))
	r.Long("/why/book", push.ScopeWrite, bookThen)
}
