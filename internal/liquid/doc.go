// Package liquid renders messages whose strings are templates in Liquid, as the engine of Shopify does: the public conformance suite
// decides (TestMessage_Golden). What differs is said here, and is never silent:
//
//   - A rendering is bounded in steps, each of which takes some hundred nanoseconds, and in bytes. It counts, instead of looking at
//     a clock, so that it ends in the same way however busy the machine is, in a simulation as in the campaign.
//   - A variable that there is not is a fault that names it, unless the filter default follows it. To ask in a condition whether
//     there is one is no use of it: {% if plan %}, {% if plan == blank %}, {% if plan and plan == "gold" %}.
//   - The cell of a list is a text. A text that is a number counts as one, and beside a number it is compared as one; any other text
//     is a fault there. Numbers are counted as they are written: 0.1 and 0.2 are 0.3.
//   - A date that cannot be read, or that may be two days, is a fault.
//   - In the member html of a message, values are escaped, unless the template says so with the filter raw, or has escaped them
//     itself. In its member title, a line break becomes a space.
//   - Nothing is read from elsewhere: there is no include, and no render.
//   - What that engine passes over when it cannot be read is a fault.
//
// A template is divided into tokens (scan.go), whose expressions are divided into words (words.go, reader.go, expression.go, condition.go). From
// them the parser makes nodes (template.go, tags.go, loop.go), which a machine runs (machine.go).
package liquid
