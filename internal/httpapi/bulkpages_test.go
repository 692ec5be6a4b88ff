package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBulkChange_Pages: what was refused, and the bulk changes themselves, come page by page, each once, in their order; and a token of
// one list is none of another.
func TestBulkChange_Pages(t *testing.T) {
	b := setup(t)
	const pushes = 6
	var want []any
	for i := range pushes {
		p := b.send("POST", "/v1/pushes", pushBody("anna", b.in(time.Duration(48+2*i)*time.Hour), `,"category":"c"`)).must(t, 201)
		if i > 0 { // the first one gets the place
			want = append(want, p.at(t, "id"))
		}
	}
	ask := func(body string) (path, id string) {
		id = b.send("POST", "/v1/bulk-changes", body).must(t, 202).at(t, "id").(string)
		b.bulkWorker()
		return "/v1/bulk-changes/" + id, id
	}
	gathered, first := ask(`{"action":"move","send_at":"` + b.in(99*time.Hour) + `","filter":{"category":"c"}}`)
	other, second := ask(`{"action":"cancel","filter":{"category":"none"}}`)

	read := func(path, list, id string, size int) (all []any, tokens []string) {
		token := ""
		for {
			r := b.send("GET", fmt.Sprintf("%s?page_size=%d&page_token=%s", path, size, token), "").must(t, 200)
			page := r.at(t, list).([]any)
			if len(page) > size {
				t.Errorf("%d on a page of %d", len(page), size)
			}
			for _, one := range page {
				all = append(all, one.(map[string]any)[id])
			}
			if token = r.at(t, "next_page_token").(string); token == "" {
				return all, tokens
			}
			tokens = append(tokens, token)
		}
	}
	for _, size := range []int{1, 2, pushes - 1, 100} {
		got, _ := read(gathered+"/refused", "refused", "push", size)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d on a page: %s", size, diff)
		}
	}
	got, lists := read("/v1/bulk-changes", "bulk_changes", "id", 1)
	if diff := cmp.Diff([]any{second, first}, got); diff != "" {
		t.Error(diff)
	}
	_, refused := read(gathered+"/refused", "refused", "push", 1)
	b.send("GET", other+"/refused?page_token="+refused[0], "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/bulk-changes?page_token="+refused[0], "").must(t, 422, "invalid-request")
	b.send("GET", gathered+"/refused?page_token="+lists[0], "").must(t, 422, "invalid-request")
	b.send("GET", "/v1/bulk-changes?page_token="+lists[0], "", "Authorization", "Bearer "+b.other).must(t, 422, "invalid-request")
}
