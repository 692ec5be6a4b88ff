package campaign

import (
	"encoding/json"
	"errors"
	"maps"

	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
)

// Variables are what a template knows of a recipient: the attributes that are stored, which may be nil, and in their place,
// where they have the same name, the columns of the line, with its recipient and its address. A line without the column to has
// no such variable of its own; one whose cell is empty has it among its variables.
func Variables(line push.CampaignLine, attributes json.RawMessage) (map[string]any, error) {
	all, err := liquid.Variables(attributes)
	if err != nil {
		return nil, errors.New("the attributes of the recipient can not be read")
	}
	columns, err := liquid.Variables(line.Variables)
	if err != nil {
		return nil, errors.New("the columns of the line can not be read")
	}
	maps.Copy(all, columns)
	all["recipient"] = line.Recipient
	if line.To != "" {
		all["to"] = line.To
	}
	return all, nil
}
