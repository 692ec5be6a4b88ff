package policies

import (
	"net/http"
	"strconv"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/rest"
)

// versionsParams selects a page of the versions.
var versionsParams = rest.PagesOf(maxVersions, strconv.Itoa(defaultVersions), rest.PageToken[rest.PageParams](rest.UsualToken))

// A version has up to 64 KiB.
const maxVersions, defaultVersions = 100, 50

func (h *policies) listVersions(c *rest.Call) error {
	return rest.List(c, &versionsParams, func(q rest.PageParams, before int64) ([]policy.Version, *int64, error) {
		all, err := h.svc.Versions(c.Request.Context(), c.Caller.Tenant, before, q.Size+1)
		if err != nil || len(all) <= q.Size {
			return all, nil, err
		}
		return all[:q.Size], &all[q.Size-1].Number, nil
	}, func(all []policy.Version, next string) any {
		return versionsView{rest.ViewsOf(all, versionViewOf), next}
	})
}

func versionViewOf(v policy.Version) versionView {
	view := versionView{Version: v.Number, At: rest.Stamp(v.At), By: v.By}
	if v.Document != nil {
		view.Policy.documentView = new(documentViewOf(*v.Document))
	}
	return view
}

func (h *policies) getOperation(c *rest.Call) error {
	o, err := h.svc.Operation(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return rest.NoSuch("operation", err)
	}
	return c.Answer(http.StatusOK, operationViewOf(o))
}
