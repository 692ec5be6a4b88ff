// Package record defines the records that tenants read: attempts that have ended, and refused submits. It is pure.
package record
