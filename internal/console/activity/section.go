// Package activity has the pages of messages, bulk changes, failures, audits and the activity log.
package activity

import (
	"embed"
	"html/template"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/internal/push"
)

//go:embed templates
var templates embed.FS

// Section has messages, bulk changes, failures, audits and the activity log.
var Section = frame.Section{
	Templates: templates,
	Functions: template.FuncMap{
		"bulkreason": bulkReason,
		"asked":      askedBulk,
		"action":     actionName,
		"changes":    changes,
		"filtered":   filtered,
		"logexport":  logExport,
		"targetlink": targetLink,
	},
	Routes: activityRoutes,
}

// activityRoutes adds the pages of messages, failures and audits.
func activityRoutes(r frame.Routes) {
	r.Get("/pushes", push.ScopeRead, showPushes)
	r.Get("/pushes/new", push.ScopeWrite, newPush)
	r.Long("/pushes/new", push.ScopeWrite, submitOnePush)
	r.Get("/pushes/bulk", push.ScopeWrite, showBulk)
	r.Post("/pushes/bulk", push.ScopeWrite, startBulk)
	r.Get("/pushes/bulk/{id}", push.ScopeRead, showBulkChange)
	r.Get("/pushes/bulk/{id}/live", push.ScopeRead, streamBulkChange)
	r.Form("/pushes/bulk/{id}/stop", "/pushes/bulk/{id}", push.ScopeWrite, stopBulk)
	r.Get("/pushes/{id}", push.ScopeRead, showPush)
	for name, h := range map[string]frame.Handler{"cancel": cancelPush, "move": moveOnePush, "retry": retryOnePush} {
		r.Get("/pushes/{id}/"+name, push.ScopeRead, showPush)
		r.Post("/pushes/{id}/"+name, push.ScopeWrite, h)
	}

	r.Get("/failures", push.ScopeRecordsRead, showFailures)
	r.Get("/failures/retry", push.ScopeRecordsRead, showFailures)
	r.Long("/failures/retry", push.ScopeWrite, retryFailures)

	r.Get("/proof", push.ScopeRecordsRead, showAudits)
	r.Get("/proof/log", push.ScopeRecordsRead, showAuditLog)
	r.Get("/proof/log/export", push.ScopeRecordsRead, exportAuditLog)
}
