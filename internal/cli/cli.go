// Package cli is the command line of the three programs, so that they behave alike: --help and --version, and an exit
// status of 2 for a command line that cannot be understood, of 1 for a command that failed.
package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"github.com/sendquota/sendquota/internal/build"
)

// Flags are those that every program has. Embed it in the commands.
type Flags struct {
	Version kong.VersionFlag `help:"Print the version and leave."`
}

// usage is the exit status of a wrong command line, as of most programs.
const usage = 2

// Main runs the command that the command line names, and ends the process if that fails. An error may have an exit
// status of its own. Options are more of kong's.
func Main(commands any, name, description string, options ...kong.Option) {
	parser := kong.Must(commands, append(options, kong.Name(name), kong.Description(description), kong.Vars{"version": name + " " + build.Read().String()})...)
	kongcompletion.Register(parser) // which answers a shell that completes a line, and ends the process
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
