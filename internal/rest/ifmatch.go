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

// ifMatch reads the tags in If-Match, one of which the resource must have; nil: any resource matches. An unreadable tag becomes
// somethingElse, which never matches; an unreadable tag without quotes is an error. like describes valid tags in that error.
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

// IfVersion reads the versions in If-Match, one of which must be in force.
func (c *Call) IfVersion(bad *FieldErrors) []int64 {
	return ifMatch(c.Request.Header, `the version of a policy, like "3"`, -1, func(tag string) (int64, error) {
		n, err := strconv.ParseUint(tag, 10, 63)
		return int64(n), err
	}, bad)
}

// ifUnchanged reads the times in If-Match, one of which must be the time of the last change.
func (c *Call) ifUnchanged(bad *FieldErrors) push.Unchanged {
	return ifMatch(c.Request.Header, "an ETag, like "+exampleETag, time.Time{}, func(tag string) (time.Time, error) { return time.Parse(time.RFC3339Nano, tag) }, bad)
}

const exampleETag = `"2026-11-27T09:30:00.123456Z"`

// Tag sets the ETag of a resource by the time of its last change, unless there is an error.
func (c *Call) Tag(updatedAt time.Time, err error) {
	if err == nil {
		c.Writer.SetHeader("Etag", strconv.Quote(Stamp(updatedAt)))
	}
}

// unchangedParam documents the header If-Match of a change.
func unchangedParam() *huma.Param {
	return Param("header", "If-Match", "The ETag of the version to change: updated_at in quotes. If the resource was changed after that, the answer is 412, and nothing changes.",
		exampleETag, huma.Schema{Type: huma.TypeString})
}

// Etagged documents that an answer has an ETag.
func Etagged(status string) func(map[string]*huma.Response) {
	return func(all map[string]*huma.Response) {
		AddHeader(all[status], "ETag", "The time of the last change, for If-Match.")
	}
}

// IfMatchParam describes the header If-Match of a change of the policy.
func IfMatchParam() string {
	return fmt.Sprintf("The version to change, like %q. If another one is in force, the answer is 412, and nothing changes.", "3")
}
