// Package config is the list of sendquota's settings: environment variables, and the YAML file that SENDQUOTA_CONFIG names.
//
// Every setting is one line of a method called settings (of the file) or variables (of the environment): its name, its
// default, its meaning, the field that receives it, and its bounds. The package strictyaml reads them, and reports every
// error at once.
//
// The package opens nothing but that file. It does not connect to servers nor open other files that the settings name. Of the
// packages that use the settings it imports quota and ratelimit, whose rules and limits stand in the file.
package config
