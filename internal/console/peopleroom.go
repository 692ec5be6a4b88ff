package console

import "github.com/sendquota/sendquota/internal/push"

// peopleRoom has the pages of recipients, and why someone did not get a message.
var peopleRoom = room{
	Templates: templatesOf("people"),
	Routes:    peopleRoutes,
}

// peopleRoutes adds the pages of recipients.
func peopleRoutes(r routes) {
	r.Get("/recipients", push.ScopeQuota, showRecipients)
	r.Get("/recipients/{id}", push.ScopeQuota, showRecipient)
	r.Get("/recipients/{id}/free", push.ScopeQuota, freeWithout)
	r.Get("/recipients/{id}/submit", "", backTo("/recipients/{id}"))
	r.Long("/recipients/{id}/submit", push.ScopeWrite, submitPush)
	for name, h := range map[string]handler{"move": movePush, "cancel": cancelOnAxis} {
		r.Form("/recipients/{id}/"+name, "/recipients/{id}", push.ScopeWrite, h)
	}

	r.Get("/why", push.ScopeQuota, showWhy)
	r.Get("/why/book", "", backTo("/why"))
	r.Long("/why/book", push.ScopeWrite, bookThen)
}
