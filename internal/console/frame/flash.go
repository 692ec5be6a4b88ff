package frame

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// flash passes the outcome of a form, and the calls that the form made, to the page that the browser is redirected to. It travels in a
// cookie that lives for a minute at most. It is not stored here, because it can name people and is also used without a session.
type flash struct {
	Notice string `json:"notice"`
	Calls  []Call `json:"calls"` // calls that changed something
	More   int    `json:"more"`  // number of calls that do not fit into the cookie
}

const (
	flashCookie   = "sendquota-notice"
	longestFlash  = 3800     // characters; browsers take cookies of 4096
	longestUnpack = 64 << 10 // bytes
)

// leftOutList replaces an uploaded list that is left out.
const leftOutList = "@body.csv"

// pack encodes c for a cookie. If the text is too long, pack drops the bodies of calls, the longest ones first, and then the first calls.
func (c flash) pack() string {
	c.Calls = append([]Call(nil), c.Calls...)
	for {
		text := c.text()
		if len(text) <= longestFlash || len(c.Calls) == 0 {
			return text
		}
		longest := 0
		for i := range c.Calls {
			if len(c.Calls[i].Before+c.Calls[i].Body) > len(c.Calls[longest].Before+c.Calls[longest].Body) {
				longest = i
			}
		}
		if c.Calls[longest].Before != "" {
			c.Calls[longest].Before, c.Calls[longest].Body = "", leftOutList
			continue
		}
		if len(c.Calls[longest].Body) > len(leftOut) {
			c.Calls[longest].Body = leftOut
			continue
		}
		half := (len(c.Calls) + 1) / 2
		c.Calls, c.More = c.Calls[half:], c.More+half
	}
}

func (c flash) text() string {
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		err = cmp.Or(json.NewEncoder(w).Encode(c), w.Close())
	}
	if err != nil {
		panic(err) // strings and numbers always encode, and memory does not fail
	}
	return base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// secret reports whether a JSON body has a member with the name of a secret. It also returns true for a body that is not valid JSON.
func secret(body string) bool {
	if body == "" || body[0] == '@' {
		return false
	}
	in := jsontext.NewDecoder(strings.NewReader(body))
	for {
		token, err := in.ReadToken()
		if err != nil {
			return err != io.EOF
		}
		if kind, length := in.StackIndex(in.StackDepth()); token.Kind() != '"' || kind != '{' || length%2 == 0 {
			continue
		}
		for _, word := range []string{"secret", "password", "token", "credential"} {
			if strings.Contains(strings.ToLower(token.String()), word) {
				return true
			}
		}
	}
}
