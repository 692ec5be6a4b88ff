//go:build nodev

package main

// devCommands is empty: the image is for operators.
type devCommands struct{}
