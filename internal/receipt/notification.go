package receipt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"
)

const (
	maxParts      = 64 // of a mail
	maxDepth      = 4  // of parts in parts
	maxRecipients = 1000
	maxAddresses  = 100 // read of one header
)

// fields is a block of fields, such as a header. Names are found in any case.
type fields = *textproto.Header

// notificationMail has the parts of a notification that are read. No field but feedback is nil.
type notificationMail struct {
	head       fields   // of the mail itself
	message    fields   // of a delivery status: about the message
	recipients []fields // of a delivery status: about each recipient
	feedback   fields   // of a complaint
	original   fields   // the headers of the returned message
}

var errEnough = errors.New("the mail has too many parts")

// readNotification reads the parts of a mail. It skips the parts of returned messages, which may be notifications
// themselves.
func readNotification(raw []byte) (*notificationMail, error) {
	if bytes.HasPrefix(raw, []byte("From ")) { // the first line of a mailbox file
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	root, err := message.Read(bytes.NewReader(raw))
	if root == nil || root.Header.Len() == 0 || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return nil, refused("the body is not a mail")
	}
	none := &textproto.Header{}
	n := &notificationMail{head: &root.Header.Header, message: none, original: none}
	count := 0
	// A mail may be cut off behind the parts that are needed.
	_ = root.Walk(func(path []int, part *message.Entity, _ error) error {
		if count++; count > maxParts || len(path) > maxDepth {
			return errEnough
		}
		n.take(part)
		return nil
	})
	return n, nil
}

// take reads a part, if it is the first of its kind.
func (n *notificationMail) take(part *message.Entity) {
	kind, _, _ := part.Header.ContentType()
	switch strings.ToLower(kind) {
	case "message/delivery-status", "message/global-delivery-status":
		if blocks := readBlocks(part.Body, 1+maxRecipients); n.recipients == nil && len(blocks) > 0 {
			n.message, n.recipients = blocks[0], blocks[1:]
		}
	case "message/feedback-report":
		if blocks := readBlocks(part.Body, 1); n.feedback == nil && len(blocks) > 0 {
			n.feedback = blocks[0]
		}
	case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers":
		if blocks := readBlocks(part.Body, 1); n.original.Len() == 0 && len(blocks) > 0 {
			n.original = blocks[0]
		}
	}
}

// readBlocks reads blocks of fields between empty lines, at most most, until the first one that is malformed.
func readBlocks(r io.Reader, most int) (blocks []fields) {
	text, _ := io.ReadAll(io.LimitReader(r, MaxBody)) // what is readable of a broken encoding
	lines := bufio.NewReader(io.MultiReader(bytes.NewReader(text), strings.NewReader("\r\n\r\n")))
	for len(blocks) < most && skipEmpty(lines) {
		head, err := textproto.ReadHeader(lines)
		if err != nil || head.Len() == 0 {
			break
		}
		blocks = append(blocks, &head)
	}
	return blocks
}

// skipEmpty skips empty lines, and reports whether another line follows.
func skipEmpty(r *bufio.Reader) bool {
	for {
		next, err := r.Peek(1)
		if err != nil {
			return false
		}
		if next[0] != '\r' && next[0] != '\n' {
			return true
		}
		_, _ = r.Discard(1)
	}
}
