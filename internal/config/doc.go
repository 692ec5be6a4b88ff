// Package config reads the settings of sendquota: environment variables, and
// the YAML file that SENDQUOTA_CONFIG names.
//
// It is strict. An unknown key, a wrong type or a value out of range is a
// fault; every fault is found in one run, and each says where it is, what
// stands there and what is allowed. No password or secret appears in a fault,
// nor when a Config is printed.
//
// Every setting is one line of one table: its name, its default, its meaning
// and how it is read. The tables are the methods called fields (of the file)
// and variables (of the environment); Settings lists them for documentation.
//
// The package opens nothing but the file. It does not connect to what the
// settings name nor open other files that they name, and knows none of the
// packages that use them.
package config
