// Package recurrence says when something happens that happens again and again: the occurrences of a cron expression on
// the clocks of a zone, and what becomes of those that were missed. It reads no clock and keeps nothing.
//
// The fields of an expression are times on the wall. One that is left out in spring happens at the first instant after
// the gap, and two that fall together there happen once. One that comes twice in autumn happens at the first of the two;
// with * for the hour it happens at both.
package recurrence
