package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/config"
)

// defaultAPI is the address of an API on this machine.
const defaultAPI = "http://127.0.0.1:8080"

// apiFlags are the flags of commands that call the API.
type apiFlags struct {
	API     string `name:"api" placeholder:"URL" help:"The address of the API. Default: the one in SENDQUOTA_API, or http://127.0.0.1:8080."`
	KeyFile string `placeholder:"FILE" help:"A file with an API key. Default: the key in SENDQUOTA_API_KEY."`
}

// Validate is called by kong.
func (f apiFlags) Validate() error {
	if f.API == "" {
		return nil
	}
	return checkAPI("--api", f.API)
}

func checkAPI(from, address string) error {
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s: %s: must be a URL such as %s", from, brief(address), defaultAPI)
	}
	return nil
}

// open returns a client with the key of the flags or the environment. The scope is only for the error text.
func (f apiFlags) open(scope string, c client.Config) (*client.Client, error) {
	key, address := os.Getenv(config.APIKeyVariable), cmp.Or(f.API, os.Getenv(config.APIVariable), defaultAPI)
	if err := checkAPI(config.APIVariable, address); err != nil {
		return nil, err
	}
	if f.KeyFile != "" {
		text, err := os.ReadFile(f.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--key-file: %w", err)
		}
		key = string(text)
	}
	if key = strings.TrimSpace(key); key == "" {
		return nil, fmt.Errorf("there is no API key: set SENDQUOTA_API_KEY or --key-file; to create a key: sendquota keys create --tenant NAME --scopes %s", scope)
	}
	return client.New(address, key, c)
}

// refusal returns an error with the status and the problem that the API answered.
func refusal(err error) error {
	var invalid *client.Invalid
	var p *client.Problem
	if !errors.As(err, &p) {
		return err
	}
	all := fmt.Sprintf("the API answered %d: %s", p.Status, cmp.Or(p.Detail, p.Title))
	if errors.As(err, &invalid) && len(invalid.Errors) > 1 {
		for _, e := range invalid.Errors {
			all += fmt.Sprintf("\n  %s %s", e.Location, e.Message)
		}
	}
	return errors.New(all)
}
