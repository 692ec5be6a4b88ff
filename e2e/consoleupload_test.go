package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
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

// audienceForm is the form that sends a list whose columns are the recipient, the time zone and a story: its type, and its body.
func audienceForm(t *testing.T, header string, lines int, line func(i int) string) (kind string, body []byte) {
	t.Helper()
	var text bytes.Buffer
	form := multipart.NewWriter(&text)
	for i, column := range []struct{ header, as, name string }{{"id", "recipient", ""}, {"zone", "time_zone", ""}, {"story", "variable", "story"}} {
		testenv.Check(t, form.WriteField(fmt.Sprintf("header[%d]", i), column.header))
		testenv.Check(t, form.WriteField(fmt.Sprintf("as[%d]", i), column.as))
		testenv.Check(t, form.WriteField(fmt.Sprintf("name[%d]", i), column.name))
	}
	file, err := form.CreateFormFile("file", "winter.csv")
	testenv.Check(t, err)
	_, err = fmt.Fprintln(file, header)
	testenv.Check(t, err)
	for i := range lines {
		_, err = fmt.Fprintln(file, line(i))
		testenv.Check(t, err)
	}
	testenv.Check(t, form.Close())
	return form.FormDataContentType(), text.Bytes()
}

// TestConsole_SlowUpload: a list that takes longer to arrive than any other request may, with the time zones of its people, is taken whole.
func TestConsole_SlowUpload(t *testing.T) {
	allOnly(t)
	t.Parallel()
	const (
		lines = 3000
		slow  = 42 * time.Second // longer than the 30 seconds that a request has
		parts = 84
	)
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	c := b.session("sender")
	draft, err := b.client().Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "Winter sale", Message: client.Message{"title": "Hi {{ story }}"}})
	testenv.Check(t, err)

	form, body := audienceForm(t, "id,zone,story", lines, func(i int) string {
		return fmt.Sprintf("user-%d,Asia/Tokyo,%s", i, strings.Repeat("once upon a time ", 20))
	})
	ticks := time.NewTicker(slow / parts)
	defer ticks.Stop()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.api+"/console/campaigns/"+draft.ID+"/audience",
		&slowLine{bytes.NewReader(body), ticks, int64(len(body)/parts) + 1})
	testenv.Check(t, err)
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", form)
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

// TestConsole_RefusedUpload: a browser that reads the answer when it has sent everything learns what is wrong with the list, however long that is.
func TestConsole_RefusedUpload(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	c := b.session("sender")
	draft, err := b.client().Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "Winter sale", Message: client.Message{"title": "Hi"}})
	testenv.Check(t, err)
	form, body := audienceForm(t, "id,zone,town", 200_000, func(i int) string { return fmt.Sprintf("user-%d,Asia/Tokyo,%s", i, strings.Repeat("once ", 20)) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.api+"/console/campaigns/"+draft.ID+"/audience", bytes.NewReader(body))
	testenv.Check(t, err)
	request.Header.Set("Content-Type", form)
	for _, cookie := range c.Jar.Cookies(request.URL) {
		request.AddCookie(cookie)
	}
	conn, err := net.Dial("tcp", b.Addr)
	testenv.Check(t, err)
	defer conn.Close()
	if err := request.Write(conn); err != nil {
		t.Fatalf("the server hung up before the list had arrived: %v", err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	testenv.Check(t, err)
	page, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(page), "other columns") {
		t.Errorf("%s, %v\n%s", answer.Status, err, page)
	}
}
