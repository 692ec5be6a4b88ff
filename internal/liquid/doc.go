// Package liquid renders messages whose strings are templates in Liquid. github.com/osteele/liquid reads the templates, evaluates
// their expressions, and has most of their filters. What runs them is here, because the templates are written by strangers:
//
//   - A rendering is bounded in steps, each of which takes some hundred nanoseconds, and in bytes. It counts, instead of looking at
//     a clock, so that it ends in the same way however busy the machine is, in a simulation as in the campaign.
//   - A variable that there is not is a fault that names it, unless the filter default follows it. To ask in a condition whether
//     there is one is no use of it: {% if plan %}, {% if plan and plan == "gold" %}.
//   - In the member html of a message, values are escaped, unless the template says so with the filter raw, or has escaped them
//     itself. In its member title, a line break becomes a space.
//   - Nothing is read from elsewhere: there is no include, and no render.
package liquid
