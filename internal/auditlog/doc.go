// Package auditlog defines the audit log of a tenant: its entries, and the actions that they record. It is pure.
package auditlog
