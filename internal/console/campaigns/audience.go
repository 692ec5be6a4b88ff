package campaigns

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
)

// audienceForm is the step of the audience.
type audienceForm struct {
	Columns *columnForm      // columns of the checked file; nil if there is none
	Result  *client.Audience // of the file that was sent, if it has bad lines
	Zones   *client.Import   // the same, of its time zones

	BadLines, BadZones badLines // as they are in the file
}

// mostFields bounds the fields of a form beside its file, in number and in bytes.
const (
	mostFields   = 2000
	longestField = 4 << 10
)

// mostDropped is the maximum of a refused file that is read and dropped, or of a file that is checked without a script. answerTime is the
// time to send the answer after it.
const (
	mostDropped = 1 << 30
	answerTime  = 30 * time.Second
)

func showAudience(p *frame.Page, v *draftView) error {
	v.Form = &audienceForm{}
	return showDraft(p, "audience", v)
}

// channelType is the type of the channel of a draft; empty, if it is not known: it only helps to guess.
func channelType(p *frame.Page, v *draftView) string {
	var report client.ChannelReport
	if err := p.API.Get(p.Context(), "/v1/channels", nil, &report); err != nil {
		return ""
	}
	v.Channels = report.Channels
	return string(v.channelOf().Type)
}

// showColumns shows the columns of a file and reads only its beginning. A script requests them as a part of the page and sends only the
// beginning.
func showColumns(p *frame.Page, v *draftView) error {
	form := &audienceForm{}
	v.Form = form
	file, err := readUpload(p)
	if err == nil {
		form.Columns, err = sampleColumns(file, channelType(p, v), p.MayRecipients())
		err = unreadable(err)
		dropFile(p, file)
	}
	if p.Request.Header.Get("HX-Request") == "" {
		if err != nil {
			return againDraft(p, err, "audience", v)
		}
		return showDraft(p, "audience", v)
	}
	if err != nil {
		var problem *client.Invalid
		if !errors.As(err, &problem) {
			return err
		}
		p.Faults = map[string]string{"file": frame.FaultWords(p, problem.Errors[0])}
	}
	v.Step = "audience"
	return p.Fragment("campaigndraft", "columns", v)
}

// dropFile reads the rest of a file: a browser reads the answer when all is sent.
func dropFile(p *frame.Page, file io.Reader) {
	_, _ = io.CopyN(io.Discard, file, mostDropped)
	_ = http.NewResponseController(p.Writer).SetWriteDeadline(time.Now().Add(answerTime)) // a test's writer has none
}

// unreadable returns the error of a file as a fault of its field.
func unreadable(err error) error {
	var wrong frame.Faults
	var problem *client.Problem
	if errors.As(err, &problem) {
		return err
	}
	wrong.Add("file", err)
	return wrong.Problem()
}

// putAudience sends a file to the API while it arrives, its columns called as was chosen.
func putAudience(p *frame.Page, v *draftView) error {
	form := &audienceForm{}
	v.Form = form
	file, err := readUpload(p)
	form.Columns = readColumns(p.Request.PostForm, p.MayRecipients())
	if err == nil && form.Columns == nil {
		err = unreadable(errors.New("show the columns of the file first"))
	}
	if err == nil {
		err = sendAudience(p, v.ID, file, form)
	}
	if err != nil && file != nil {
		dropFile(p, file)
	}
	if err != nil {
		return againDraft(p, err, "audience", v)
	}
	done := frame.CountWords(form.Result.Accepted, "recipient is", "recipients are") + " in the audience."
	if form.Result.Duplicates > 0 {
		done += " " + frame.CountWords(form.Result.Duplicates, "row repeats a recipient", "rows repeat a recipient") + " of an earlier row: the earlier row counts."
	}
	if form.Result.Rejected == 0 && (form.Zones == nil || form.Zones.Rejected == 0) {
		return p.Done(done, p.Link("/campaigns/"+v.ID+"/preview"))
	}
	if v.Campaign, err = p.API.Campaigns.Get(p.Context(), v.ID); err != nil {
		return err
	}
	p.Notice, p.Request.PostForm, form.Columns = done, nil, nil
	return showDraft(p, "audience", v)
}

// readUpload reads the fields of a form up to its file, which it opens.
func readUpload(p *frame.Page) (*multipart.Part, error) {
	body := &frame.HeadReader{ReadCloser: lists.PatientBody(p.Writer, p.Request)}
	p.Request.PostForm, p.Request.Body = url.Values{}, body
	parts, err := p.Request.MultipartReader()
	if err != nil {
		return nil, unreadable(errors.New("choose the file"))
	}
	size := 0
	for fields := 0; ; fields++ {
		body.Next()
		part, err := parts.NextPart()
		body.Head = false
		switch {
		case errors.Is(err, frame.ErrLongHead):
			return nil, &client.Problem{Title: "The form is too long", Status: http.StatusRequestEntityTooLarge, Detail: "The header of a part of the form is too long. The audience was not changed."}
		case errors.Is(err, io.EOF):
			return nil, unreadable(errors.New("choose the file"))
		case err != nil:
			return nil, &client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The upload was interrupted. The audience was not changed."}
		case part.FormName() == "file" && part.FileName() == "":
			return nil, unreadable(errors.New("choose the file"))
		case part.FormName() == "file":
			return part, nil
		}
		text, err := io.ReadAll(io.LimitReader(part, longestField))
		if size += len(text); err != nil || fields == mostFields || size > frame.LongestColumns {
			return nil, &client.Problem{Title: "The form is too long", Status: http.StatusRequestEntityTooLarge, Detail: "The column names are too long or too many. A file can have 500 columns."}
		}
		p.Request.PostForm.Add(part.FormName(), string(text))
	}
}

// sendAudience sends the lines of a file, and the time zones in it to the recipients, at the same time: nothing is kept here.
func sendAudience(p *frame.Page, id string, file io.Reader, form *audienceForm) error {
	var zones *zoneImport
	columns := form.Columns
	if columns.Zones && columns.of(asZone) >= 0 && columns.of(asRecipient) >= 0 {
		zones = importZones(p, columns)
		file = io.TeeReader(file, zones)
	}
	opened, before, body, err := openCSV(file, columns)
	if err != nil {
		zones.drop(err)
		return err
	}
	form.BadLines = badLines{}
	ctx := lists.WithBadLines(frame.WithUpload(p.Context(), before, body), form.BadLines.take)
	all, err := p.API.Campaigns.PutAudience(ctx, id, opened, client.CSV)
	if err != nil {
		zones.drop(err)
		return fileFaults(err, zones != nil)
	}
	form.Result = &all
	if form.Zones, err = zones.end(); zones != nil {
		form.BadZones = zones.bad
	}
	return err
}

// fileFaults puts what is wrong with the whole file to its field. With zones, those above the place of the fault may be kept.
func fileFaults(err error, zones bool) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			one := &invalid.Errors[i]
			if at := frame.FieldOf(one.Location); at == "body" || at == "header" {
				one.Location = "file"
				if zones {
					one.Message += "; time zones above that line may already be saved"
				}
			}
		}
	}
	return err
}

// downloadBadRows gives the bad lines, which the form has, as a file.
func downloadBadRows(p *frame.Page) error {
	lines, messages, texts := p.Request.PostForm["line"], p.Request.PostForm["message"], p.Request.PostForm["text"]
	p.Attach(frame.MediaCSV, "bad-lines.csv")
	out := lists.NewCSVWriter(p.Writer, lists.ExcelCSV, "line", "message", "the row in your list")
	for i := range lines[:min(len(lines), len(messages), len(texts))] {
		n, err := strconv.Atoi(lines[i])
		if err != nil {
			continue
		}
		out.Write(fmt.Sprint(n), messages[i], texts[i])
	}
	if all, err := strconv.ParseInt(p.Field("all"), 10, 64); err == nil && all > int64(len(lines)) {
		out.Write("", fmt.Sprintf("These are the first %s of %s.", frame.Number(len(lines)), frame.CountWords(all, "bad row", "bad rows")), "")
	}
	_ = out.Flush() // a browser that went away needs no file
	return nil
}
