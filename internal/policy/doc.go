// Package policy reads what a tenant writes about its sends: rules, categories and quiet hours. A [Document] is that
// text, with everything that is wrong with it found at once; [Terms] are its meaning, as the rules of [quota.Policy] for
// one push to one person.
//
// It decides nothing and does no arithmetic of its own: each thing that a document can say becomes a rule of package
// quota, and so a blocked interval.
//
//	a rule with window             a rolling rule
//	a rule with per                a rule over the periods of a calendar
//	channels, categories           the scope of what the rule counts, and whether the push is judged by it
//	counts: false                  categories that no rule counts
//	reserve                        the rule once more: with fewer places, and without the category they are kept for
//	quiet hours                    a rule without places, over the hours
//	bypass                         no rules at all
package policy
