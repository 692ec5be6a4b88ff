package main

import (
	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// completion prints the script that completes this command in a shell.
type completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is shown by --help.
func (completion) Help() string {
	return "In ~/.bashrc: source <(sendquota completion bash). In ~/.zshrc: source <(sendquota completion zsh). In ~/.config/fish/config.fish: sendquota completion fish | source"
}

// Run prints the script.
func (c completion) Run(ctx *kong.Context) error {
	return (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(ctx)
}
