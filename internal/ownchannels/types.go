package ownchannels

import (
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// The API and the console describe the members of channels by these names.
type (
	// ChannelType is a type of channel with its members.
	ChannelType = config.ChannelType
	// Member describes a member of a channel, for a schema or a form.
	Member = strictyaml.Setting
)

// The kinds of members, and the default of a required one.
const (
	KindWord       = strictyaml.KindWord
	KindBoolean    = strictyaml.KindBoolean
	KindInteger    = strictyaml.KindInteger
	KindDuration   = strictyaml.KindDuration
	KindSecret     = strictyaml.KindSecret
	RequiredMember = strictyaml.Required
)

// ChannelTypes describes all types that a tenant can have in any installation.
func ChannelTypes() []ChannelType { return config.ChannelTypes() }
