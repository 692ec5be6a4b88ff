// Package policy reads the rules, categories and quiet hours of a tenant. A [Document] is the tenant's text; all its
// errors are found at once. [Terms] are its meaning: the rules of [quota.Policy] for one push to one person.
//
// It decides nothing and does no arithmetic: each member of a document becomes a rule of package quota, and so a
// blocked interval.
//
//	a rule with window             a rolling rule
//	a rule with per                a rule over the periods of a calendar
//
// channels, categories           the scope: which pushes the rule counts, and which ones it can refuse
//
//	counts: false                  categories that no rule counts
//
// reserve                        the rule again: with fewer places, and without the category that has the reserve
//
//	quiet hours                    a rule without places, over the hours
//	bypass                         no rules at all
package policy
