// Command api serves sendquota's REST API.
package main

import "github.com/sendquota/sendquota/internal/programs"

func main() { programs.API() }
