// Command worker delivers scheduled pushes.
package main

import "github.com/sendquota/sendquota/internal/programs"

func main() { programs.Worker() }
