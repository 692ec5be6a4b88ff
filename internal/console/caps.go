package console

import (
	"errors"
	"time"

	"github.com/sendquota/sendquota/client"
)

// capsView is what the tenant may have at a time, with how much of it is used.
type capsView struct{ client.Caps }

// showCaps shows what the operator allows, on a day that the URL names: today, if it names none.
func showCaps(p *page) error {
	view := &capsView{}
	var (
		wrong faults
		day   time.Time
		err   error
	)
	if text := p.Query("day"); text != "" {
		if day, err = time.Parse(time.DateOnly, text); err != nil {
			wrong.add("day", errors.New("write it as 2026-12-01"))
		}
	}
	if err = wrong.problem(); err == nil {
		view.Caps, err = p.api.Quota.GetCaps(p.ctx(), client.CapsOptions{Day: day})
	}
	if err != nil {
		return p.again(err, "settingscaps", "Caps", view)
	}
	return p.show("settingscaps", "Caps", view)
}

// capWords says how much of a cap is used.
func capWords(c client.Cap) string {
	used := number(c.Used)
	if !c.Complete {
		used = "more than " + used
	}
	switch {
	case c.Limit == 0:
		return used + "; no cap"
	case c.Used >= c.Limit:
		return used + " of " + number(c.Limit) + ": nothing more is accepted until some have ended"
	}
	return used + " of " + number(c.Limit) + " (" + percent(c.Used, c.Limit) + ")"
}
