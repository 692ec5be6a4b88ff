package receipt

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// snsEnvelope is a message of SNS to an endpoint over HTTP.
//
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
type snsEnvelope struct {
	Type, MessageID, Token, TopicArn, Message, SubscribeURL, Timestamp string

	Subject                                     *string
	SignatureVersion, Signature, SigningCertURL string
}

// The types of messages.
const (
	snsNotification = "Notification"
	snsSubscribed   = "SubscriptionConfirmation"
	snsUnsubscribed = "UnsubscribeConfirmation"
)

// snsTopic is the topic whose messages are accepted.
type snsTopic struct {
	arn  string
	host string // of SNS in its region
}

var topicForm = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):sns:([a-z0-9-]{3,32}):[0-9]{12}:[A-Za-z0-9_-]{1,256}$`)

func newTopic(arn string) (snsTopic, error) {
	parts := topicForm.FindStringSubmatch(arn)
	if parts == nil {
		return snsTopic{}, errors.New("the topic is not an ARN such as arn:aws:sns:eu-west-1:123456789012:name")
	}
	host := "sns." + parts[2] + ".amazonaws.com"
	if parts[1] == "aws-cn" {
		host += ".cn"
	}
	return snsTopic{arn, host}, nil
}

// open reads a message and proves it. It makes no request before the topic and the address of the certificate are right.
func (t snsTopic) open(ctx context.Context, body []byte, certs *certificates) (snsEnvelope, error) {
	var e snsEnvelope
	if err := json.Unmarshal(body, &e); err != nil {
		return e, refused("the body is not a message of SNS")
	}
	hash, digest := e.digest()
	signature, err := base64.StdEncoding.DecodeString(e.Signature)
	switch {
	case e.Type == "" && e.Signature == "":
		return e, refused("the message has no signature: turn off raw message delivery of the subscription")
	case e.TopicArn != t.arn:
		return e, refused("the message is of another topic")
	case digest == nil:
		return e, refused("the type or the version of the signature is not known")
	case err != nil || len(signature) == 0:
		return e, refused("the signature is not readable")
	case !t.certificateURL(e.SigningCertURL):
		return e, refused("the certificate is not at SNS in the topic's region")
	}
	key, err := certs.key(ctx, e.SigningCertURL)
	if err != nil {
		return e, err
	}
	if rsa.VerifyPKCS1v15(key, hash, digest, signature) != nil {
		return e, refused("the signature does not match")
	}
	return e, nil
}

// digest returns the hash of what is signed: lines of names and values. It returns no hash for an unknown type or
// version.
func (e snsEnvelope) digest() (crypto.Hash, []byte) {
	var text strings.Builder
	line := func(name, value string) { text.WriteString(name + "\n" + value + "\n") }
	line("Message", e.Message)
	line("MessageId", e.MessageID)
	switch e.Type {
	case snsNotification:
		if e.Subject != nil {
			line("Subject", *e.Subject)
		}
		line("Timestamp", e.Timestamp)
	case snsSubscribed, snsUnsubscribed:
		line("SubscribeURL", e.SubscribeURL)
		line("Timestamp", e.Timestamp)
		line("Token", e.Token)
	default:
		return 0, nil
	}
	line("TopicArn", e.TopicArn)
	line("Type", e.Type)
	switch e.SignatureVersion {
	case "1":
		sum := sha1.Sum([]byte(text.String()))
		return crypto.SHA1, sum[:]
	case "2":
		sum := sha256.Sum256([]byte(text.String()))
		return crypto.SHA256, sum[:]
	}
	return 0, nil
}

var certificatePath = regexp.MustCompile(`^/SimpleNotificationService-[A-Za-z0-9]{1,64}\.pem$`)

// certificateURL reports whether a URL leads to a certificate of SNS in the topic's region, in its only spelling.
func (t snsTopic) certificateURL(s string) bool {
	path, ok := strings.CutPrefix(s, "https://"+t.host)
	return ok && certificatePath.MatchString(path)
}

// confirmURL reports whether a URL confirms a subscription to the topic.
func (t snsTopic) confirmURL(s string) bool {
	if len(s) > 2048 || !strings.HasPrefix(s, "https://"+t.host+"/") {
		return false
	}
	u, err := url.Parse(s)
	if err != nil || u.Path != "/" || u.Fragment != "" {
		return false
	}
	query, err := url.ParseQuery(u.RawQuery)
	return err == nil && query.Get("Action") == "ConfirmSubscription" && query.Get("TopicArn") == t.arn
}
