package push

import (
	"context"

	"github.com/google/uuid"
)

// Actor identifies the user, API key or link that makes a change. The zero Actor is the system. It travels in the
// context, so that the audit log can name it.
type Actor struct {
	Type ActorType
	ID   uuid.UUID // the user, API key or link; Nil: the system
	Name string    // the operator of the command-line tool; "": all others
}

// ActorType is the kind of an actor.
type ActorType string

// The types of actors.
const (
	ActorUser   ActorType = "user"   // of the console
	ActorKey    ActorType = "key"    // the holder of an API key
	ActorLink   ActorType = "link"   // the holder of a link for setting a password, maybe not the user
	ActorSystem ActorType = "system" // a worker, or the operator's tool
)

// ActorTypes lists all types of actors.
var ActorTypes = []ActorType{ActorUser, ActorKey, ActorLink, ActorSystem}

// Actor returns the caller as an actor: the user, or else the API key.
func (c *Caller) Actor() Actor {
	if c.User != uuid.Nil {
		return Actor{Type: ActorUser, ID: c.User}
	}
	return Actor{Type: ActorKey, ID: c.Key}
}

type actorKey struct{}

// WithActor returns a context that names the actor of all changes made with it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor that [WithActor] put into a context, by default the system.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Type: ActorSystem}
}
