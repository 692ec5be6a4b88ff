package channels

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/rest"
)

// The schemas of requests and answers, one for each type, are made from the table of the settings.

// formSchema describes a channel in a request.
func formSchema(s *rest.Spec) *huma.Schema {
	all := &huma.Schema{Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}}}
	for _, of := range ownchannels.ChannelTypes() {
		schema := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}, AdditionalProperties: false}
		addMembers(schema, of, formMember)
		ref := s.AddSchema(schemaName(of)+"Form", schema)
		all.OneOf = append(all.OneOf, ref)
		all.Discriminator.Mapping[of.Type] = ref.Ref
	}
	return all
}

func schemaName(of ownchannels.ChannelType) string {
	return strings.ToUpper(of.Type[:1]) + of.Type[1:] + "Channel"
}

// Schema describes a channel in an answer: the operator's, or an own one with the members of its type.
func (channelView) Schema(r huma.Registry) *huma.Schema {
	own, types := choice("type"), []any{}
	for _, of := range ownchannels.ChannelTypes() {
		own.add(r, of.Type, schemaName(of), answerSchema(r, of))
		types = append(types, of.Type)
	}
	head := headSchema("tenant", "Your own channel, with the settings of its type as members. Defaults are filled in. Instead of a secret there is an object with set and set_at.")
	head.OneOf, head.Discriminator, head.Required = own.OneOf, own.Discriminator, append(head.Required, "type")
	head.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: types}
	all := choice("owner")
	all.add(r, "operator", "OperatorChannel", headSchema("operator", "A channel of the operator. Its settings are not shown."))
	all.add(r, "tenant", "OwnChannel", head)
	return all.Schema
}

// choices is a schema that is one of several.
type choices struct{ *huma.Schema }

// choice returns an empty choice by a member.
func choice(member string) choices {
	return choices{&huma.Schema{Discriminator: &huma.Discriminator{PropertyName: member, Mapping: map[string]string{}}}}
}

// add adds a schema for a value of the member.
func (c choices) add(r huma.Registry, value, name string, schema *huma.Schema) {
	schema.PrecomputeMessages()
	r.Map()[name] = schema
	ref := &huma.Schema{Ref: "#/components/schemas/" + name}
	c.OneOf = append(c.OneOf, ref)
	c.Discriminator.Mapping[value] = ref.Ref
}

// answerSchema describes an own channel of a type.
func answerSchema(r huma.Registry, of ownchannels.ChannelType) *huma.Schema {
	schema := headSchema("tenant", "Your own channel of the type "+of.Type+".")
	secret := r.Schema(reflect.TypeFor[ownchannels.ChannelSecret](), true, "")
	addMembers(schema, of, func(of string, m ownchannels.Member) (*huma.Schema, bool) {
		if m.Form.Kind == ownchannels.KindSecret {
			return secret, false
		}
		member, _ := formMember(of, m)
		member.AdditionalProperties = nil
		return member, m.Name == "type"
	})
	at := func(doc string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Format: "date-time", Description: doc}
	}
	schema.Properties["problem"] = &huma.Schema{Type: huma.TypeString, Nullable: true, Description: "Why nothing is sent, such as: it is disabled. Pushes wait. null: nothing is wrong."}
	schema.Properties["created_at"], schema.Properties["updated_at"] = at(""), at("The time of the last change.")
	schema.Required = append(schema.Required, "problem", "created_at", "updated_at")
	return schema
}

// headSchema describes the members that all channels in answers have.
func headSchema(owner, doc string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, Description: doc, Required: []string{"name", "owner"}, Properties: map[string]*huma.Schema{
		"name": {Type: huma.TypeString}, "owner": {Type: huma.TypeString, Enum: []any{owner}, Description: "Who made the channel."},
	}}
}

// addMembers adds the members of a type. describe returns the schema of a member, and whether it is required.
func addMembers(schema *huma.Schema, of ownchannels.ChannelType, describe func(of string, m ownchannels.Member) (member *huma.Schema, required bool)) {
	for _, m := range of.Members {
		to, name := schema, m.Name
		if section, inner, ok := strings.Cut(m.Name, "."); ok {
			to, name = schema.Properties[section], inner
		}
		member, required := describe(of.Type, m)
		to.Properties[name] = member
		if required {
			to.Required = append(to.Required, name)
		}
	}
}

// formMember describes a member in a request. A secret that is required may be left out by a later change, so no secret is required.
func formMember(of string, m ownchannels.Member) (schema *huma.Schema, required bool) {
	schema = &huma.Schema{Type: huma.TypeString, Description: m.Meaning}
	if m.Form.Example != "" {
		schema.Examples = []any{m.Form.Example}
	}
	switch m.Form.Kind {
	case ownchannels.KindWord:
		for _, word := range m.Form.Words {
			schema.Enum = append(schema.Enum, word)
		}
		if m.Name == "type" {
			schema.Enum = []any{of}
		}
	case ownchannels.KindBoolean:
		schema.Type = huma.TypeBoolean
	case ownchannels.KindInteger:
		least, most := float64(m.Form.Least), float64(m.Form.Most)
		schema.Type, schema.Minimum, schema.Maximum = huma.TypeInteger, &least, &most
	case ownchannels.KindSecret:
		schema.WriteOnly, schema.Nullable = true, true // null removes it
	case ownchannels.KindList:
		schema.Type, schema.Examples = huma.TypeArray, nil
		schema.Items = &huma.Schema{Type: huma.TypeString}
		if m.Form.Example != "" {
			schema.Items.Examples = []any{m.Form.Example}
		}
	case "":
		schema.Type, schema.Properties, schema.AdditionalProperties = huma.TypeObject, map[string]*huma.Schema{}, false
	}
	required = m.Default == ownchannels.RequiredMember && m.Form.Kind != ownchannels.KindSecret
	return schema, required
}
