package user

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// TestRole_Scopes checks that each role includes the one below it, and only the admin has everything.
func TestRole_Scopes(t *testing.T) {
	may := func(r Role) (all []string) {
		u := User{Role: r}
		c := u.Caller()
		for _, scope := range push.Scopes {
			if c.May(scope) {
				all = append(all, scope)
			}
		}
		return all
	}
	want := []string{"pushes:read", "quota:read", "recipients:read", "policy:read", "campaigns:read", "records:read", "keys:read", "users:read", "pauses:read", "channels:read", "suppressions:read"}
	for _, step := range []struct {
		role Role
		more []string
	}{
		{Viewer, nil},
		{Editor, []string{"recipients:write", "suppressions:write", "policy:write", "campaigns:draft"}},
		{Sender, []string{"pushes:write", "limits:take", "campaigns:write", "pauses:write"}},
		{Admin, []string{"webhooks:manage", "keys:write", "users:write", "channels:write"}},
	} {
		want = append(want, step.more...)
		got := may(step.role)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", step.role, diff)
		}
	}
	if len(may(Admin)) != len(push.Scopes) || may("king") != nil {
		t.Errorf("admin %v, king %v", may(Admin), may("king"))
	}
}

func TestUser_Caller(t *testing.T) {
	for role, masked := range map[Role]bool{Viewer: true, Editor: false, Sender: false, Admin: false} {
		u := User{ID: [16]byte{1}, Tenant: [16]byte{2}, Role: role}
		if c := u.Caller(); c.Masked != masked || c.User != u.ID || c.Tenant != u.Tenant || c.Key != [16]byte{} {
			t.Errorf("%s: %+v", role, c)
		}
	}
}

func TestMightier(t *testing.T) {
	for _, row := range [][3]Role{{Viewer, Admin, Admin}, {Admin, Viewer, Admin}, {"", Viewer, Viewer}, {Sender, Sender, Sender}, {"", "", ""}, {Editor, Sender, Sender}} {
		if got := Higher(row[0], row[1]); got != row[2] {
			t.Errorf("%q, %q: %q", row[0], row[1], got)
		}
	}
}

func TestCleanEmail(t *testing.T) {
	for text, want := range map[string]string{
		" Ada@Example.COM ": "ada@example.com", "a@b": "a@b", "ä@ö.de": "ä@ö.de",
		"": "", "ada": "", "@example.com": "", "ada@": "", "a@b@c": "", "a b@c": "", "a\x00@b": "", "a@b\n": "a@b", "\xff@b": "", "a\u00a0b@c": "",
		strings.Repeat("a", 252) + "@b": strings.Repeat("a", 252) + "@b", strings.Repeat("a", 253) + "@b": "",
	} {
		if got, wrong := CleanEmail(text); got != want || (wrong == "") != (want != "") {
			t.Errorf("%q: %q, %q", text, got, wrong)
		}
	}
}

func TestNewLink(t *testing.T) {
	token, hash := NewLink()
	other, _ := NewLink()
	if len(token) != 43 || token == other || HashLink(token) != hash || HashLink(other) == hash {
		t.Errorf("%q, %q", token, other)
	}
}

func TestTrimAgent(t *testing.T) {
	for text, want := range map[string]string{
		"Mozilla/5.0 (X11)": "Mozilla/5.0 (X11)", "a\r\nb\x1b[31m\x00": "ab[31m", "\xffa": "a",
		strings.Repeat("ä", 200): strings.Repeat("ä", 100), "a" + strings.Repeat("ä", 200): "a" + strings.Repeat("ä", 99),
	} {
		if got := TrimAgent(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
