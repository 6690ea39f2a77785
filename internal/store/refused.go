package store

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daybook-dev/daybook/internal/store/hosts"
)

// What a server refuses or lacks, and what to do about it.

// RefusesConnection reports whether no connection could be made because of who asks, or for which
// database: the user, the password, the server's rules of access, the database's name or a
// certificate is wrong.
func RefusesConnection(err error) bool {
	state := SQLState(err)
	return isConnectError(err) && (strings.HasPrefix(state, "28") || state == "3D000" || state == "42501" || refusesTLS(err))
}

// RefusalAdvice is what to do about RefusesConnection.
func RefusalAdvice(err error) string {
	if SQLState(err) == "" && refusesTLS(err) {
		return "Check sslmode, sslrootcert, sslcert and sslkey in DAYBOOK_DATABASE_URL: sslrootcert names the authority " +
			"that signed the server's certificate, and the address has a host name that stands in it."
	}
	return "Check the user, the password and the database's name in DAYBOOK_DATABASE_URL."
}

// refusesTLS reports whether one side does not take the other's certificate, or the server has no
// TLS and the address wants it. An address that tries TLS first, and goes on without, names the
// server's refusal in whatever error it ends with.
func refusesTLS(err error) bool {
	if connect, ok := errors.AsType[*pgconn.ConnectError](err); ok && goesOnWithoutTLS(connect.Config) {
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	network, ok := errors.AsType[*net.OpError](err)
	return ok && network.Op == "remote error" || err != nil && strings.Contains(err.Error(), "server refused TLS connection")
}

func goesOnWithoutTLS(c *pgconn.Config) bool {
	return c.TLSConfig == nil || slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil })
}

// ConnectionsAdvice is what to do about LacksConnections.
const ConnectionsAdvice = "Raise max_connections, or the limit of the role or of the database, or lower " +
	"pool_max_conns in the workers' addresses: https://github.com/daybook-dev/daybook/blob/main/docs/operating.md#start says how many " +
	"connections a worker opens."

// LacksConnections reports whether no connection could be made because the server, the role or the
// database has as many as it may have.
func LacksConnections(err error) bool { return SQLState(err) == "53300" }

// DiskAdvice is what to do about LacksDisk.
const DiskAdvice = "Free space on the disk of PostgreSQL, or of the tablespace that holds the file, or make it " +
	"larger: what waits goes on by itself."

// LacksDisk reports whether the server has no room on a disk for what was to be written.
func LacksDisk(err error) bool { return SQLState(err) == stateDiskFull }

// SplitAdvice is what to do about hosts.ErrSplit.
const SplitAdvice = "Stop the server that was not promoted last, the one with the lower timeline, and keep it from " +
	"starting; what it alone has written since is lost when it is rewound, so read that first " +
	"(https://github.com/daybook-dev/daybook/blob/main/docs/operating.md#failover)."

// Advice is what to do about an error by which the server says itself what it lacks; empty: it does
// not.
func Advice(err error) string {
	switch {
	case LacksConnections(err):
		return ConnectionsAdvice
	case LacksDisk(err):
		return DiskAdvice
	case errors.Is(err, hosts.ErrSplit):
		return SplitAdvice
	}
	return ""
}

// Advised is the error's text, and what to do, if the server says itself what it lacks.
func Advised(err error) string {
	if advice := Advice(err); advice != "" {
		return err.Error() + ". " + advice
	}
	return err.Error()
}
