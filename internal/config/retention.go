package config

import (
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Retention has the lifetimes of records. Zero: for ever.
type Retention struct {
	Pushes time.Duration // from their end
	Sends  time.Duration // from the begin of the attempt
	Log    time.Duration // the audit log
}

func (r *Retention) settings(t *strictyaml.Table) {
	t.Duration("pushes", "2160h", "how long a push is kept after its end, at least the longest window of the policy; the default is raised to that; it is removed at most a week later; 0: for ever", &r.Pushes, 0, forever)
	t.Duration("sends", "9600h", "how long an attempt is kept, at least the longest window; it is removed at most a day later; 0: for ever", &r.Sends, 0, forever)
	t.Duration("audit_log", "9600h", "how long the audit log is kept; an entry is removed at most a week later; 0: for ever", &r.Log, 0, forever)
}

// checkRetention requires at least the longest window, because all promises and sends within it count.
func (c *Config) checkRetention(p strictyaml.Node) {
	if c.Policy.terms == nil {
		return // it has errors
	}
	longest := c.Policy.terms.Reach()
	hold := func(name string, kept *time.Duration) {
		at := p.Child("retention").Child(name)
		switch {
		case *kept == 0 || *kept >= longest:
		case at.Given():
			at.BadValue("must be at least the longest window of the policy, which is %s, or 0", duration.Words(longest))
		default:
			*kept = longest
		}
	}
	hold("pushes", &c.Retention.Pushes)
	hold("sends", &c.Retention.Sends)
}
