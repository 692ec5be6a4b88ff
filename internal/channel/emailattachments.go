package channel

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode"

	"github.com/sendquota/sendquota/internal/invalid"
)

// The bounds of attachments.
const (
	// MaxAttachments is the maximum size of all attachments of an e-mail together, in bytes after decoding.
	MaxAttachments = 2 << 20

	mostAttachments = 20
	maxFileName     = 200 // bytes, so that its escaped form fits into a line
	maxMediaType    = 200 // bytes, also with its parameters escaped
)

// attachment is a file in an e-mail.
type attachment struct {
	name    string
	media   string
	content []byte
}

// attachmentsIn reads the attachments of a message.
func attachmentsIn(in message, bad *invalid.FieldErrors) (all []attachment) {
	const field = "message.attachments"
	if !in.given("attachments") {
		return nil
	}
	var list []json.RawMessage
	switch {
	case json.Unmarshal(in["attachments"], &list) != nil:
		bad.Add(field, nil, "must be a list of objects with name, type and content")
		return nil
	case len(list) > mostAttachments:
		bad.Add(field, nil, "must have at most %d attachments, has %d", mostAttachments, len(list))
		return nil
	}
	size := 0
	for i, raw := range list {
		a := readAttachment(fmt.Sprintf("%s[%d]", field, i), raw, bad)
		size += len(a.content)
		all = append(all, a)
	}
	if size > MaxAttachments {
		bad.Add(field, nil, "must have at most %d bytes together, decoded, has %d", MaxAttachments, size)
	}
	return all
}

// readAttachment reads one attachment at a place.
func readAttachment(at string, raw json.RawMessage, bad *invalid.FieldErrors) (a attachment) {
	in := open(raw)
	if in == nil {
		bad.Add(at, nil, "must be an object with name, type and content")
		return a
	}
	for name := range in {
		if name != "name" && name != "type" && name != "content" {
			bad.Add(at, shortened(name), "must have the members name, type and content only")
		}
	}
	a.name = in.text("name")
	if wrong := fileNameFault(a.name); wrong != "" {
		bad.Add(at+".name", valueOf(shortened(a.name)), "%s", wrong)
	}
	var ok bool
	if a.media, ok = mediaType(in); !ok {
		bad.Add(at+".type", valueOf(shortened(in.text("type"))), "must be a media type such as application/pdf, and no multipart or message")
	}
	var err error
	if text := in.text("content"); text == "" {
		bad.Add(at+".content", nil, "must be a non-empty string in base64")
	} else if a.content, err = base64.StdEncoding.DecodeString(text); err != nil {
		bad.Add(at+".content", nil, "must be base64, with the alphabet of + and / and with padding")
	}
	return a
}

// fileNameFault returns what is wrong with the name of a file, or "".
func fileNameFault(name string) string {
	switch {
	case name == "":
		return "must be a non-empty string"
	case len(name) > maxFileName:
		return fmt.Sprintf("must have at most %d bytes", maxFileName)
	case strings.ContainsAny(name, `/\`) || strings.Trim(name, ". ") == "":
		return "must be the name of a file, without a folder"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must have printable characters only"
	}
	return ""
}

// mediaType returns the media type of an attachment, and whether it is valid. Parts that contain other parts are not:
// they must not be written in base64 (RFC 2045, 6.4).
func mediaType(in message) (media string, ok bool) {
	if !in.given("type") {
		return "application/octet-stream", true
	}
	kind, params, err := mime.ParseMediaType(in.text("type"))
	main, sub, _ := strings.Cut(kind, "/")
	if err != nil || sub == "" || main == "multipart" || main == "message" || params["name"] != "" {
		return "", false
	}
	media = mime.FormatMediaType(kind, params)
	return media, media != "" && len(media) <= maxMediaType
}
