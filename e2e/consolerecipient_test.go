package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Recipient finds room for one more push to a person whose hour is full, by keyboard alone: it books a push
// there, drags another, moves one without a mouse, and cancels one after a preview of the freed times.
func TestConsole_Recipient(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: strings.Replace(consoleConfig, "{name: per-day, limit: 3, window: 24h}", "{name: per-hour, limit: 5, window: 1h}", 1)})
	b.StartAPI()
	api := b.client()
	w := b.signIn("admin")
	noon := tomorrowNoon()
	var booked []client.Push
	for i := range 5 {
		one, err := api.Pushes.Submit(t.Context(), "", client.NewPush{
			Recipient: "user 42", Channel: "log", Message: client.Message{"title": fmt.Sprintf("News %d", i+1)}, SendAt: noon.Add(time.Duration(10*i) * time.Minute),
		})
		testenv.Check(t, err)
		booked = append(booked, one)
	}
	at := "?tz=utc&scale=6h&at=" + noon.Format(time.RFC3339)

	w.visit("/console/recipients?tz=utc")
	w.screen("")
	w.tabTo("#f-id")
	w.press("user 42", kb.Enter)
	w.shown("h1", "user 42")

	w.visit("/console/recipients/user%2042" + at)
	w.shown(".cursor-handle")
	w.tabTo(".cursor-handle")
	w.press(kb.Home)
	w.until(`document.activeElement.getAttribute("aria-valuetext").includes("free")`)
	// From 11:40 until 13:00 one more push would be the sixth of an hour: so the fifth step of ten minutes leads to 13:00.
	w.press(kb.PageUp, kb.PageUp, kb.PageUp, kb.PageUp, kb.PageUp)
	w.said("per-hour")
	w.said("News 1")
	w.said("The cursor moved to " + stamp(noon.Add(time.Hour)) + " UTC, in ")
	w.screen("")
	w.press(kb.Enter)
	w.until(`document.activeElement.id === "f-send_at"`)
	w.tabTo(`[name="message.title"]`)
	w.press("One more", kb.Enter)
	w.said("Scheduled for " + stamp(noon.Add(time.Hour)))
	w.shown("td", "“One more”")

	// Dragged to a time that is not free, it would go to the next one that is; dropped there, it is moved after one more question.
	w.visit("/console/recipients/user%2042" + at)
	w.shown(".cursor-handle")
	mark := func(id string) point { return w.middle("[data-push='" + id + "']") }
	from, to := mark(booked[4].ID), mark(booked[1].ID)
	w.mouse("mousePressed", from)
	w.mouse("mouseMoved", point{from.X - 20, from.Y})
	w.mouse("mouseMoved", point{to.X, from.Y})
	w.said("The message would move to ")
	w.shown("[data-why] strong", "per-minute")
	w.mouse("mouseReleased", point{to.X, from.Y})
	w.said("Choose a new time for “News 5”")
	w.said("The message can be moved here.")
	w.screen("recipient-move")
	w.click("button", "Move")
	w.said("Moved to ")
	moved, err := api.Pushes.Get(t.Context(), booked[4].ID)
	testenv.Check(t, err)
	if moved.SendAt.Equal(booked[4].SendAt) || moved.SendAt.Sub(booked[1].SendAt).Abs() < time.Minute {
		t.Errorf("moved to %s, from %s", stamp(moved.SendAt), stamp(booked[4].SendAt))
	}

	// The same without a mouse.
	w.visit("/console/recipients/user%2042" + at + "&move=" + booked[3].ID)
	w.tabTo(".cursor-handle")
	w.press(kb.End, kb.Enter)
	w.until(`document.activeElement.id === "f-move_to"`)
	w.tabTo("main button:not(.plain)")
	w.press(kb.Enter)
	w.said("Moved to " + noon.Format("2006-01-02") + " 16:59:59")

	w.visit("/console/recipients/user%2042" + at + "&cancel=" + booked[0].ID)
	w.said("become free")
	w.screen("")
	w.click("button", "Cancel message")
	w.said("is canceled and no longer counts towards limits")
}
