package config

// Setting describes a setting for a reader of the documentation.
type Setting struct {
	Name    string // an environment variable, or a key such as policy.rules[].limit or channels.NAME.url
	Default string // as it would be written; "required" where there is none; empty where absent means none
	Meaning string // in one phrase, with what is allowed
}

// Settings lists every setting: the environment variables, then the keys of
// the file. It reads the tables that also do the reading.
func Settings() []Setting {
	var c Config
	return append(describe("", c.variables()), describe("", c.fields())...)
}

func describe(prefix string, fields []field) []Setting {
	var all []Setting
	for _, f := range fields {
		if f.meaning == "" {
			continue
		}
		all = append(all, Setting{prefix + f.name, f.preset, f.meaning})
		all = append(all, describe(prefix+f.name+f.step+".", f.fields)...)
	}
	return all
}
