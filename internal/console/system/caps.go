package system

import (
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// capsView has the caps of the tenant and their use.
type capsView struct{ client.Caps }

// showCaps shows what the operator allows, on a day that the URL names: today, if it names none.
func showCaps(p *frame.Page) error {
	view := &capsView{}
	var (
		wrong frame.Faults
		day   time.Time
		err   error
	)
	if text := p.Query("day"); text != "" {
		if day, err = time.Parse(time.DateOnly, text); err != nil {
			wrong.Add("day", errors.New("write it as 2026-12-01"))
		}
	}
	if err = wrong.Problem(); err == nil {
		view.Caps, err = p.API.Quota.GetCaps(p.Context(), client.CapsOptions{Day: day})
	}
	if err != nil {
		return p.ShowAgain(err, "settingscaps", "Caps", view)
	}
	return p.Show("settingscaps", "Caps", view)
}

// capWords describes the use of a cap.
func capWords(c client.Cap) string {
	used := frame.Number(c.Used)
	if !c.Complete {
		used = "more than " + used
	}
	switch {
	case c.Limit == 0:
		return used + "; no cap"
	case c.Used >= c.Limit:
		return used + " of " + frame.Number(c.Limit) + ": nothing more is accepted until some have ended"
	}
	return used + " of " + frame.Number(c.Limit) + " (" + frame.Percent(c.Used, c.Limit) + ")"
}
