package quota

import "strings"

// Name is the name of a category, a channel or a rule as it is kept and compared: in lower case, without spaces around it. Marketing and
// marketing are one category: who wants nothing of the one is sent nothing of the other.
func Name(s string) string { return strings.ToLower(strings.Trim(s, " ")) }
