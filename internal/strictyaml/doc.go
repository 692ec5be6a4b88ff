// Package strictyaml reads settings strictly, from environment variables and a YAML file.
//
// An unknown key, a wrong type and a value out of range are errors. One run finds every error. Each error names its place,
// the value there and the allowed values. No error shows a secret.
//
// A function lists the settings of a section in a [Table], as in the package flag: name, default, meaning, and the
// variable that receives the value.
//
//	func (b *Backoff) settings(t *strictyaml.Table) {
//		t.Duration("first", "5s", "the first wait; each further one is twice as long", &b.First, 1, strictyaml.Forever)
//		t.Duration("max", "15m", "the longest wait", &b.Max, 1, strictyaml.Forever)
//	}
//
// A default is written in YAML, or is [Required] or [Optional]. A setting with an error keeps its zero value. [Describe]
// lists all settings for the documentation.
//
// The package knows no setting, opens no file, and takes the environment as an argument.
package strictyaml
