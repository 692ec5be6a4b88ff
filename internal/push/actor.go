package push

import (
	"context"

	"github.com/google/uuid"
)

// Actor is who changes something: the zero one is the system. It travels in the context, so that the audit log can name it.
type Actor struct {
	Type ActorType
	ID   uuid.UUID // of the user, the API key or the link; Nil: of the system
	Name string    // of an operator with the command-line tool; "": of all others
}

// ActorType says what an actor is.
type ActorType string

// The types of actors.
const (
	ActorUser   ActorType = "user"   // of the console
	ActorKey    ActorType = "key"    // whoever has an API key
	ActorLink   ActorType = "link"   // whoever has a link to set a password, maybe not the user
	ActorSystem ActorType = "system" // a worker, or the operator's tool
)

// ActorTypes lists all of them.
var ActorTypes = []ActorType{ActorUser, ActorKey, ActorLink, ActorSystem}

// Actor returns who the caller is.
func (c *Caller) Actor() Actor {
	if c.User != uuid.Nil {
		return Actor{Type: ActorUser, ID: c.User}
	}
	return Actor{Type: ActorKey, ID: c.Key}
}

type actorKey struct{}

// WithActor returns a context in which everything is done by an actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who acts in a context: the system, unless [WithActor] says another.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Type: ActorSystem}
}
