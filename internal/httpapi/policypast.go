package httpapi

import (
	"net/http"
	"strconv"

	"github.com/sendquota/sendquota/internal/policy"
)

// versionsParams is which page of the versions is asked for.
var versionsParams = pagesOf(maxVersions, strconv.Itoa(defaultVersions), pageToken[pageParams](usualToken))

// A version has up to 64 KiB.
const maxVersions, defaultVersions = 100, 50

func (h *policies) listVersions(c *call) error {
	return list(c, &versionsParams, func(q pageParams, before int64) ([]policy.Version, *int64, error) {
		all, err := h.svc.Versions(c.r.Context(), c.caller.Tenant, before, q.size+1)
		if err != nil || len(all) <= q.size {
			return all, nil, err
		}
		return all[:q.size], &all[q.size-1].Number, nil
	}, func(all []policy.Version, next string) any { return versionsView{viewsOf(all, versionViewOf), next} })
}

func versionViewOf(v policy.Version) versionView {
	view := versionView{Version: v.Number, At: stamp(v.At), By: v.By}
	if v.Document != nil {
		view.Policy.documentView = new(documentViewOf(*v.Document))
	}
	return view
}

func (h *policies) getOperation(c *call) error {
	o, err := h.svc.Operation(c.r.Context(), c.caller.Tenant, c.id)
	if err != nil {
		return noSuch("operation", err)
	}
	return c.answer(http.StatusOK, operationViewOf(o))
}
