package rest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

// ifMatch reads If-Match: the tags of which one must be that of what is changed; nil: any may be. A tag that cannot be read is that of
// something else; without its quotes, it is a fault. What tags are like is said in it.
func ifMatch[T any](h http.Header, like string, somethingElse T, read func(tag string) (T, error), bad *FieldErrors) (tags []T) {
	const most = 100
	for _, tag := range strings.Split(strings.Join(h["If-Match"], ","), ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || tag == "" && len(h["If-Match"]) == 0 {
			return nil
		}
		plain, quoted := strings.TrimPrefix(tag, "W/"), false
		if unquoted, ok := strings.CutPrefix(plain, `"`); ok && strings.HasSuffix(unquoted, `"`) {
			plain, quoted = strings.TrimSuffix(unquoted, `"`), true
		}
		v, err := read(plain)
		if err != nil && quoted && len(tags) < most {
			v, err = somethingElse, nil
		}
		if err != nil || len(tags) == most {
			bad.Add("header.If-Match", "must be "+like, Shown(printableASCII(tag)))
			return nil
		}
		tags = append(tags, v)
	}
	return tags
}

// IfVersion reads which versions of a policy may be in force.
func (c *Call) IfVersion(bad *FieldErrors) []int64 {
	return ifMatch(c.Request.Header, `the version of a policy, like "3"`, -1, func(tag string) (int64, error) {
		n, err := strconv.ParseUint(tag, 10, 63)
		return int64(n), err
	}, bad)
}

// ifUnchanged reads when what is to be changed may have been changed last.
func (c *Call) ifUnchanged(bad *FieldErrors) push.Unchanged {
	return ifMatch(c.Request.Header, "an ETag, like "+exampleETag, time.Time{}, func(tag string) (time.Time, error) { return time.Parse(time.RFC3339Nano, tag) }, bad)
}

const exampleETag = `"2026-11-27T09:30:00.123456Z"`

// Tag gives an answer, unless there is an error, the ETag of something that was last changed at a time.
func (c *Call) Tag(updatedAt time.Time, err error) {
	if err == nil {
		c.Writer.SetHeader("Etag", strconv.Quote(Stamp(updatedAt)))
	}
}

// unchangedParam documents the header of a change.
func unchangedParam() *huma.Param {
	return Param("header", "If-Match", "The ETag of the version to change: updated_at in quotes. If the resource was changed after that, the answer is 412, and nothing changes.",
		exampleETag, huma.Schema{Type: huma.TypeString})
}

// Etagged documents that an answer bears the ETag.
func Etagged(status string) func(map[string]*huma.Response) {
	return func(all map[string]*huma.Response) {
		AddHeader(all[status], "ETag", "The time of the last change, for If-Match.")
	}
}

// IfMatchParam documents the header of a change of the policy.
func IfMatchParam() string {
	return fmt.Sprintf("The version to change, like %q. If another one is in force, the answer is 412, and nothing changes.", "3")
}
