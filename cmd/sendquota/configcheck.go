package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
)

type checkConfig struct {
	jsonFlag
	File    *string `arg:"" optional:"" help:"The YAML file, instead of the one that SENDQUOTA_CONFIG names."`
	Connect bool    `help:"If the settings have no errors, connect to Postgres and Redis, and report what they lack: migrations, rights, versions, and server settings. Nothing is changed."`
}

// Validate is called by kong.
func (c checkConfig) Validate() error {
	if c.File != nil && *c.File == "" {
		return errors.New("FILE is empty; leave it out to check the one that SENDQUOTA_CONFIG names")
	}
	return nil
}

// printFaults prints v with each line of err as a fault. Without --json it prints the text if there is no error. It returns err too.
func (f jsonFlag) printFaults(v map[string]any, err error, text string, args ...any) error {
	v["faults"] = []string{}
	if err != nil {
		v["faults"] = strings.Split(err.Error(), "\n")
	}
	if err == nil || f.JSON {
		err = errors.Join(err, f.print(v, text, args...))
	}
	return err
}

// Run reads the settings as the services do. It connects to the servers only with --connect.
func (c checkConfig) Run() error {
	environ := os.Environ()
	if c.File != nil {
		environ = append(environ, config.FileVariable+"="+*c.File) // the last one counts
	}
	cfg, err := app.Load(environ)
	from := "of the environment"
	if cfg.File != "" {
		from += " and of " + cfg.File
	}
	if err == nil && c.Connect {
		ctx, stop := app.UntilSignal()
		defer stop()
		err = app.CheckServers(ctx, cfg)
		from += ", and none in Postgres and Redis"
	}
	warnings := []string{}
	if err == nil {
		warnings = append(warnings, cfg.Warnings()...)
	}
	for _, warning := range warnings {
		fmt.Fprintln(os.Stderr, "warning:", warning)
	}
	return c.printFaults(map[string]any{"file": cfg.File, "warnings": warnings}, err, "no faults in the settings %s\n", from)
}
