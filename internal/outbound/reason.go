package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// Reason returns why a connection or a request failed. It only passes on texts of errors that it knows, because the
// errors of net/http quote the server's text, which may contain our own request, and the errors of net contain
// addresses of the inner network.
func Reason(err error) string {
	var (
		forbidden *forbiddenAddressError
		dns       *net.DNSError
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		errno     syscall.Errno
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &forbidden):
		return forbidden.Error()
	case errors.Is(err, context.Canceled):
		return "the attempt was canceled"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns) && !dns.IsTimeout:
		return "the host's name could not be resolved"
	case errors.As(err, &cert):
		return certReason(cert.Err)
	case errors.As(err, &record):
		return "the server does not speak TLS there"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.Is(err, errNotHTTP2):
		return errNotHTTP2.Error()
	}
	return tlsReason(err)
}

// certReason does not quote the certificate, because its names are the server's text.
func certReason(err error) string {
	var (
		host      x509.HostnameError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &host):
		return "the server's certificate is for another host"
	case errors.As(err, &authority):
		return "the server's certificate is signed by an unknown authority"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not yet valid"
	}
	return "the server's certificate is not valid"
}

// tlsReason recognizes a refused TLS handshake, whose types crypto/tls does not export.
func tlsReason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		err = op.Err
	}
	if strings.HasPrefix(err.Error(), "tls: ") {
		return err.Error()
	}
	return "the connection broke, or the answer is malformed"
}
