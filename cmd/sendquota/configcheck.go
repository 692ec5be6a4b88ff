package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/config"
)

type checkConfig struct {
	File *string `arg:"" optional:"" help:"The YAML file, instead of the one that SENDQUOTA_CONFIG names."`
}

// Validate is called by kong.
func (c checkConfig) Validate() error {
	if c.File != nil && *c.File == "" {
		return errors.New("FILE is empty; leave it out to check the one that SENDQUOTA_CONFIG names")
	}
	return nil
}

// Run reads the settings as the services do, and asks no server.
func (c checkConfig) Run() error {
	environ := os.Environ()
	if c.File != nil {
		environ = append(environ, config.ConfigVariable+"="+*c.File) // the last one counts
	}
	cfg, err := app.Load(environ)
	if err != nil {
		return err
	}
	from := "of the environment"
	if cfg.File != "" {
		from += " and of " + cfg.File
	}
	fmt.Printf("no faults in the settings %s\n", from)
	return nil
}
