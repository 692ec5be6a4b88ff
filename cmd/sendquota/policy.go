package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/store"
)

// byTool is the name in a policy's versions for a change by this tool.
const byTool = "sendquota"

type showPolicy struct {
	Tenant string `required:"" placeholder:"NAME" help:"Name of the tenant."`
	JSON   bool   `name:"json" help:"Print JSON instead of YAML."`
}

// Run prints the document alone on standard output, so that it can be stored and applied again.
func (c showPolicy) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Tenant)
		if err != nil {
			return err
		}
		v, err := st.Policy(ctx, tenant)
		if err != nil {
			return err
		}
		document, source := cfg.Policy.Document, "the policy of the file of settings"
		if v.Document != nil {
			document, source = *v.Document, fmt.Sprintf("the tenant's own policy, since %s by %s", v.At.UTC().Format(time.RFC3339), v.By)
		} else if cfg.File == "" {
			source = "the default policy: SENDQUOTA_CONFIG is not set"
		}
		fmt.Fprintf(os.Stderr, "version %d: %s\n", v.Number, source)
		return printPolicy(os.Stdout, document, c.JSON)
	})
}

func printPolicy(w io.Writer, d policy.Document, asJSON bool) error {
	if d.Rules == nil {
		d.Rules = []policy.Rule{}
	}
	text, err := json.MarshalIndent(struct {
		Rules []policy.Rule `json:"rules"` // also if there are none
		policy.Document
	}{d.Rules, d}, "", "  ")
	if err == nil && asJSON {
		_, err = fmt.Fprintf(w, "%s\n", text)
		return err
	}
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

type checkPolicy struct {
	jsonFlag
	File string `arg:"" help:"The policy, in YAML or JSON; -: standard input."`
}

// Run checks the policy, and connects to no server.
func (c checkPolicy) Run() error {
	cfg, err := config.LoadDev(os.Environ())
	if err != nil {
		return err
	}
	p, err := readPolicy(c.File, cfg)
	return c.printFaults(map[string]any{"file": c.File, "channels": cfg.ChannelNames()}, err,
		"no faults in %s: %d rules, %d categories, %d quiet hours; the channels are: %s\n",
		c.File, len(p.Rules), len(p.Categories), len(p.QuietHours), strings.Join(cfg.ChannelNames(), ", "))
}

func readPolicy(file string, cfg config.Config) (p config.Policy, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(os.Stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return p, err
	}
	return config.ReadPolicy(file, text, cfg.ChannelNames())
}

type applyPolicy struct {
	File      string `arg:"" help:"The policy, in YAML or JSON; -: standard input."`
	Tenant    string `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Forecast  bool   `help:"Change nothing, and print the effect of the policy on existing bookings."`
	Apply     string `enum:"new_only,reslot,cancel" default:"new_only" help:"For waiting pushes that do not fit: new_only (they stay), reslot (each moves to its next free time, or is canceled if there is none) or cancel. Default: new_only."`
	IfVersion *int64 `placeholder:"N" help:"Apply only if this version is in force, as sendquota policy show prints it."`
	jsonFlag
}

// Help lists the exit statuses.
func (applyPolicy) Help() string {
	return "The policy is in force for everything that is submitted afterwards. SENDQUOTA_CONFIG lists the channels: use the file of the services.\n\n" +
		"Exit status: 0 done; 1 the policy has errors, or another version is in force, or the database did not answer; 2 a wrong command line; 3 with --forecast: some pushes do not fit."
}

func (c applyPolicy) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		p, err := readPolicy(c.File, cfg)
		if err != nil {
			return err
		}
		tenant, err := tenantNamed(ctx, st, c.Tenant)
		if err != nil {
			return err
		}
		change := policy.Change{Document: &p.Document, By: byTool, Apply: policy.Apply(c.Apply)}
		if c.IfVersion != nil {
			change.If = []int64{*c.IfVersion}
		}
		if c.Forecast {
			return c.forecast(ctx, st, tenant, change, p.Terms())
		}
		v, op, err := st.ChangePolicy(ctx, tenant, change)
		if err != nil {
			return err
		}
		return c.report(v, op)
	})
}

func (c applyPolicy) report(v policy.Version, op *policy.Operation) error {
	if c.JSON {
		said := map[string]any{"version": v.Number}
		if op != nil {
			said["operation"] = op.ID
		}
		return printJSON(os.Stdout, said)
	}
	_, err := fmt.Printf("version %d is in force for tenant %s\n", v.Number, c.Tenant)
	if op != nil {
		_, err = fmt.Printf("operation %s applies it to existing bookings\n", op.ID)
	}
	return err
}

func (c applyPolicy) forecast(ctx context.Context, st *store.Store, tenant uuid.UUID, change policy.Change, terms *policy.Terms) error {
	v, err := st.Policy(ctx, tenant)
	if err != nil {
		return err
	}
	if !change.Holds(v.Number) {
		return &policy.StaleError{InForce: v.Number}
	}
	f, err := st.Forecast(ctx, tenant, terms)
	if err != nil {
		return err
	}
	if err := printForecast(os.Stdout, f, c.JSON); err != nil {
		return err
	}
	if f.Conflicts > 0 {
		return exitStatus{errors.New("some pushes do not fit; nothing was changed"), 3}
	}
	return nil
}

func printForecast(w io.Writer, f policy.Forecast, asJSON bool) error {
	if asJSON {
		first := []map[string]any{}
		for _, c := range f.First {
			first = append(first, map[string]any{"push": c.Push, "send_at": c.SendAt, "rule": c.Rule})
		}
		by := f.ByRule
		if by == nil {
			by = map[string]int{}
		}
		return json.NewEncoder(w).Encode(map[string]any{"conflicts": f.Conflicts, "by_rule": by, "first": first})
	}
	_, err := fmt.Fprintf(w, "%d waiting pushes do not fit\n", f.Conflicts)
	for _, rule := range slices.Sorted(maps.Keys(f.ByRule)) {
		fmt.Fprintf(w, "  %s: %d\n", rule, f.ByRule[rule])
	}
	for _, c := range f.First[:min(len(f.First), 10)] {
		fmt.Fprintf(w, "%s at %s: %s\n", c.Push, c.SendAt.UTC().Format(time.RFC3339), c.Rule)
	}
	return err
}
