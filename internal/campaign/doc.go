// Package campaign sends one message to everybody in an audience.
//
// A campaign is planned line by line ([Planner]), by what was said when it was drafted and by nothing that is booked: its
// plan says what each recipient is to get, and when. Whether there is a place for it is decided as for every other push, by
// a [booking.Decider]. So a simulation, which decides and books nothing, says what a start will do.
package campaign
