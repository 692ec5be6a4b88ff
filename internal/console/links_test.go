package console

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/user"
)

var (
	hrefs = regexp.MustCompile(`<a [^>]*href="(/console[^"#]*)`)
	forms = regexp.MustCompile(`(?s)<form [^>]*method="post".*?</form>`)
)

// TestLinks_MayBeOpened checks that pages link only to pages that the role can open, and offer a viewer no form that changes something.
func TestLinks_MayBeOpened(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.failedAll(1)
	one := b.submit("anna", time.Hour)
	b.startCampaign("Winter sale", time.Now().Add(2*time.Hour), "recipient\nbert\n")
	draft, err := b.api.Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "Autumn sale", SendAt: time.Now().Add(3 * time.Hour), Message: client.Message{"title": "Hi"}})
	if err == nil {
		_, err = b.api.Campaigns.PutAudience(t.Context(), draft.ID, strings.NewReader("recipient\nanna\n"), client.CSV)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []user.Role{user.Viewer, user.Editor} {
		b.who.Role, b.who.Caller.Scopes = string(role), role.Scopes()
		seen, open := map[string]bool{}, []string{"/console/now", "/console/pushes/" + one.ID, "/console/recipients/anna"}
		for len(open) > 0 && len(seen) < 100 {
			path := open[0]
			open = open[1:]
			page, _, _ := strings.Cut(path, "?")
			if seen[page] || strings.HasSuffix(page, "/export") {
				continue
			}
			seen[page] = true
			answer := b.get(path)
			if answer.Status == 403 {
				t.Errorf("a link leads the %s to %s", role, path)
			}
			_, main, _ := strings.Cut(answer.Body, "<main")
			main, _, _ = strings.Cut(main, "</main>")
			offered := slices.ContainsFunc(forms.FindAllString(main, -1), func(form string) bool { return strings.Contains(form, "<button") })
			if role == user.Viewer && offered && !strings.Contains(page, "/settings/sessions") && !strings.Contains(page, "/settings/users/") {
				t.Errorf("a viewer is offered a form on %s", page)
			}
			for _, href := range hrefs.FindAllStringSubmatch(answer.Body, -1) {
				open = append(open, href[1])
			}
		}
		if !seen["/console/campaigns/"+draft.ID+"/preview"] {
			t.Error("the preview of the draft was not opened")
		}
	}
}
