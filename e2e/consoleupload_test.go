package e2e

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// slowLine is a body that a slow connection sends: some bytes at each tick.
type slowLine struct {
	text  *bytes.Reader
	ticks *time.Ticker
	bytes int64
}

func (s *slowLine) Read(p []byte) (int, error) {
	<-s.ticks.C
	return io.LimitReader(s.text, s.bytes).Read(p)
}

// TestConsole_SlowUpload: a list that takes longer to arrive than any other request may, with the time zones of its people, is taken whole.
func TestConsole_SlowUpload(t *testing.T) {
	t.Parallel()
	const (
		lines = 3000
		slow  = 42 * time.Second // longer than the 30 seconds that a request has
		parts = 84
	)
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	c := b.session("sender")
	draft, err := b.client().CreateCampaign(t.Context(), "", client.NewCampaign{Name: "Winter sale", Message: client.Message{"title": "Hi {{ story }}"}})
	testenv.Check(t, err)

	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i, column := range []struct{ header, as, name string }{{"id", "recipient", ""}, {"zone", "time_zone", ""}, {"story", "variable", "story"}} {
		testenv.Check(t, form.WriteField(fmt.Sprintf("header[%d]", i), column.header))
		testenv.Check(t, form.WriteField(fmt.Sprintf("as[%d]", i), column.as))
		testenv.Check(t, form.WriteField(fmt.Sprintf("name[%d]", i), column.name))
	}
	file, err := form.CreateFormFile("file", "winter.csv")
	testenv.Check(t, err)
	_, err = io.WriteString(file, "id,zone,story\n")
	testenv.Check(t, err)
	for i := range lines {
		_, err = fmt.Fprintf(file, "user-%d,Asia/Tokyo,%s\n", i, strings.Repeat("once upon a time ", 20))
		testenv.Check(t, err)
	}
	testenv.Check(t, form.Close())

	ticks := time.NewTicker(slow / parts)
	defer ticks.Stop()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.api+"/console/campaigns/"+draft.ID+"/audience",
		&slowLine{bytes.NewReader(body.Bytes()), ticks, int64(body.Len()/parts) + 1})
	testenv.Check(t, err)
	request.ContentLength = int64(body.Len())
	request.Header.Set("Content-Type", form.FormDataContentType())
	began := time.Now()
	answer, err := c.Do(request)
	testenv.Check(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	testenv.Check(t, err)
	if took := time.Since(began); took < 31*time.Second {
		t.Errorf("it took no longer than %s: that shows nothing", took)
	}
	if answer.StatusCode != http.StatusOK || !strings.Contains(string(page), "3 000 recipients are in the audience") {
		t.Errorf("after %s: %s\n%s", time.Since(began), answer.Status, page)
	}
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM recipients WHERE time_zone = 'Asia/Tokyo'`); n != lines {
		t.Errorf("the time zones of %d people are kept, want %d", n, lines)
	}
}
