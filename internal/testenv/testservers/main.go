// Command testservers runs a command beside one Postgres and one Redis that all
// tests it starts share: `testservers go test ./...`. It names them in
// TEST_DATABASE_URL and TEST_REDIS_URL, stops them when the command ends, and ends
// with its exit status. Servers that these variables name already are used.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/sendquota/sendquota/internal/testenv"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: testservers command [argument ...]")
		os.Exit(2)
	}
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testservers:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// run returns the exit status of the command. A signal ends the command first, and then the servers.
func run(command []string) (status int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	testenv.IgnoreServices()
	err = testenv.WithServers(ctx, func(environment []string) error {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(os.Environ(), environment...), os.Stdin, os.Stdout, os.Stderr
		err := cmd.Run()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			status, err = max(exit.ExitCode(), 1), nil // a signal has no exit code
		}
		return err
	})
	return status, err
}
