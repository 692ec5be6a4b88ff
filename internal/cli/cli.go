// Package cli parses the command lines of the three programs, so that they behave alike: --help and --version, exit
// status 2 for a wrong command line, and 1 for a command that failed.
package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/sendquota/sendquota/internal/build"
)

// Flags has the flags of every program. Embed it in the commands.
type Flags struct {
	Version kong.VersionFlag `help:"Print the version and exit."`
}

// usage is the exit status of a wrong command line.
const usage = 2

// Main runs the command that the command line names, and ends the process if the command fails. An error may have its own
// exit status, by a method ExitCode. Options are further options of kong.
func Main(commands any, name, description string, options ...kong.Option) {
	parser := kong.Must(commands, append(options, kong.Name(name), kong.Description(description), kong.Vars{"version": name + " " + build.Read().String()})...)
	kongcompletion.Register(parser) // answers a shell that completes a line, and ends the process
	program, err := parser.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v; see %s --help\n", name, err, name)
		os.Exit(usage)
	}
	if err := program.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(status(err))
	}
}

func status(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}
