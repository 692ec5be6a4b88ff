package httpapi

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
func ifMatch[T any](h http.Header, like string, somethingElse T, read func(tag string) (T, error), bad *fieldErrors) (tags []T) {
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
			bad.add("header.If-Match", "must be "+like, shown(printableASCII(tag)))
			return nil
		}
		tags = append(tags, v)
	}
	return tags
}

// ifVersion reads which versions of a policy may be in force.
func (c *call) ifVersion(bad *fieldErrors) []int64 {
	return ifMatch(c.r.Header, `the version of a policy, like "3"`, -1, func(tag string) (int64, error) {
		n, err := strconv.ParseUint(tag, 10, 63)
		return int64(n), err
	}, bad)
}

// ifUnchanged reads when what is to be changed may have been changed last.
func (c *call) ifUnchanged(bad *fieldErrors) push.Unchanged {
	return ifMatch(c.r.Header, "an ETag, like "+exampleETag, time.Time{}, func(tag string) (time.Time, error) { return time.Parse(time.RFC3339Nano, tag) }, bad)
}

const exampleETag = `"2026-11-27T09:30:00.123456Z"`

// tag gives an answer, unless there is an error, the ETag of something that was last changed at a time.
func (c *call) tag(updatedAt time.Time, err error) {
	if err == nil {
		c.w.setHeader("Etag", strconv.Quote(stamp(updatedAt)))
	}
}

// unchangedParam documents the header of a change.
func unchangedParam() *huma.Param {
	return param("header", "If-Match", "The ETag of the version to change: updated_at in quotes. If the resource was changed after that, the answer is 412, and nothing changes.",
		exampleETag, huma.Schema{Type: huma.TypeString})
}

// etagged documents that an answer bears the ETag.
func etagged(status string) func(map[string]*huma.Response) {
	return func(all map[string]*huma.Response) {
		addHeader(all[status], "ETag", "The time of the last change, for If-Match.")
	}
}

// ifMatchParam documents the header of a change of the policy.
func ifMatchParam() string {
	return fmt.Sprintf("The version to change, like %q. If another one is in force, the answer is 412, and nothing changes.", "3")
}
