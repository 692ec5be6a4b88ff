// Package campaign sends one message to every recipient in an audience.
//
// A [Planner] plans a campaign line by line, by the draft alone and not by bookings: the plan is each recipient's
// message and send time. As for every other push, a [booking.Decider] decides whether there is a place. So a
// simulation, which decides and books nothing, predicts what a start will do.
package campaign
