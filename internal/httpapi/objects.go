package httpapi

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"
)

// rawObject is an object of JSON with any members, as it is kept; nil: null.
type rawObject json.RawMessage

func (o rawObject) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (rawObject) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// rawObjects is an array of them.
type rawObjects json.RawMessage

func (o rawObjects) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// Schema describes it.
func (rawObjects) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: rawObject{}.Schema(r)}
}
