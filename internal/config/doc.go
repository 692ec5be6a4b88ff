// Package config is the list of sendquota's settings: environment variables, and the YAML file that SENDQUOTA_CONFIG names.
//
// Every setting is one line of a method called settings (of the file) or variables (of the environment): its name, its
// default, its meaning, the field that receives it, and its bounds. The package strictyaml reads them, and reports every
// error at once.
//
// The package opens only that file. It does not connect to servers, and does not open other files that the settings name. It
// imports two packages that use the settings, quota and ratelimit, because the file contains their rules and limits.
package config
