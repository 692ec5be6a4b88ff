//go:build nodev

package main

// devCommands are none: the image is for operators.
type devCommands struct{}
