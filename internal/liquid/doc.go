// Package liquid renders messages whose strings are templates in Liquid, like Shopify's engine: the public conformance
// suite decides (TestMessage_Golden). All differences are listed here, and none is silent:
//
// - A rendering is bounded in steps of some hundred nanoseconds, and in bytes. It counts steps instead of reading a
// clock, so that it ends in the same way on a busy machine, in a simulation and in the campaign.
// - Using an unknown variable is an error that names it, unless the filter default follows. Testing whether a
// variable exists is allowed: {% if plan %}, {% if plan == blank %}, {% if plan and plan == "gold" %}.
// - The cell of a list is a text. A numeric text counts and compares as a number; comparing any other text with a
// number is an error. Arithmetic is decimal: 0.1 and 0.2 are 0.3.
// - A date that cannot be read, or that is ambiguous, is an error.
// - In the member html of a message, values are escaped, unless the template uses the filter raw, or has escaped them
// itself. In its member title, a line break becomes a space.
// - There is no include and no render.
// - Syntax that Shopify's engine skips because it cannot read it is an error.
//
// A template is divided into tokens (scan.go), and their expressions into words (words.go, reader.go, expression.go,
// condition.go). The parser turns them into nodes (template.go, tags.go, loop.go), which a machine runs (machine.go).
package liquid
