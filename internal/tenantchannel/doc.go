// Package tenantchannel defines the channels that tenants make. It is pure.
package tenantchannel
