package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/testdb"
)

// authority signs certificates, as that of a company does. Its own is the file ca.
type authority struct {
	t    *testing.T
	ca   string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.ca, _ = a.sign(a.cert)
	return a
}

// sign writes a certificate and its key to files.
func (a *authority) sign(cert *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	if cert.IsCA {
		a.key = key
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key) // its own is signed by itself
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	dir := a.t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: signed}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		require.NoError(a.t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
	return filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
}

// issue is a certificate for a server at 127.0.0.1 and for a client.
func (a *authority) issue() (certFile, keyFile string) {
	return a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "daybook"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// postgresOverTLS is the address of a PostgreSQL that speaks TLS alone and wants a certificate of
// the authority's.
func postgresOverTLS(t *testing.T, a *authority) *url.URL {
	t.Helper()
	stack, err := devstack.Start(t.Context(), devstack.Options{Private: true, NoTemporal: true, FastAndUnsafe: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stack.Stop(context.WithoutCancel(t.Context()))) })
	admin, err := pgx.Connect(t.Context(), stack.AdminURL)
	require.NoError(t, err)
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	cert, key := a.issue()
	for name, from := range map[string]string{"ca.pem": a.ca, "server.pem": cert, "server.key": key} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		_, err = admin.Exec(t.Context(), fmt.Sprintf(`COPY (SELECT regexp_split_to_table('%s', '\n')) TO PROGRAM 'umask 077; cat > %s'`,
			text, name))
		require.NoError(t, err)
	}
	for _, stmt := range []string{
		`COPY (SELECT 'hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca') TO PROGRAM 'cat > pg_hba.conf'`,
		`ALTER SYSTEM SET ssl = on`,
		`ALTER SYSTEM SET ssl_ca_file = 'ca.pem'`,
		`ALTER SYSTEM SET ssl_cert_file = 'server.pem'`,
		`ALTER SYSTEM SET ssl_key_file = 'server.key'`,
		`SELECT pg_reload_conf()`,
	} {
		_, err := admin.Exec(t.Context(), stmt)
		require.NoError(t, err, stmt)
	}
	address, err := url.Parse(stack.DatabaseURL)
	require.NoError(t, err)
	clientCert, clientKey := a.issue()
	address.RawQuery = url.Values{
		"sslmode": {"verify-full"}, "sslrootcert": {a.ca}, "sslcert": {clientCert}, "sslkey": {clientKey},
	}.Encode()
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), address.String())
		return err == nil && conn.Close(t.Context()) == nil
	}, time.Minute, 50*time.Millisecond, "the server has read its settings")
	return address
}

// TestTLSToPostgreSQL has a worker post and a server answer over TLS with certificates on both
// sides, and each of them refuse, or be refused by, what it cannot trust.
func TestTLSToPostgreSQL(t *testing.T) {
	temporal := temporaltest.Shared(t)
	namespace := temporal.Namespace(t)
	inNamespace(t, temporal, namespace)
	a, other := newAuthority(t, "ours"), newAuthority(t, "another")
	address := postgresOverTLS(t, a)
	b := &bundle{&pgtest.DB{Database: &testdb.Database{URL: address.String()}}, t}
	b.ok("migrate", "up")
	worksSample(t, b, temporal, namespace)
	serving, stop := logged(t, b, []string{"serving"}, "serve", "--listen", "127.0.0.1:0")
	status, _ := get(t, serving["serving"]+"/readyz", "")
	assert.Equal(t, http.StatusOK, status)
	stop()

	othersCert, othersKey := other.issue()
	for name, c := range map[string]struct {
		host       string
		set        map[string]string
		code, says string
	}{
		"another authority":  {"127.0.0.1", map[string]string{"sslrootcert": other.ca}, "DATABASE_REFUSES", "certificate signed by unknown authority"},
		"another host name":  {"localhost", nil, "DATABASE_REFUSES", "wanted to match localhost"},
		"no certificate":     {"127.0.0.1", map[string]string{"sslcert": "", "sslkey": ""}, "DATABASE_REFUSES", "valid client certificate"},
		"another's":          {"127.0.0.1", map[string]string{"sslcert": othersCert, "sslkey": othersKey}, "DATABASE_REFUSES", "certificate"},
		"no TLS":             {"127.0.0.1", map[string]string{"sslmode": "disable"}, "DATABASE_REFUSES", "no encryption"},
		"authority's file":   {"127.0.0.1", map[string]string{"sslrootcert": "/no/ca.pem"}, "NO_DATABASE", "/no/ca.pem"},
		"certificate's file": {"127.0.0.1", map[string]string{"sslcert": "/no/c.pem"}, "NO_DATABASE", "/no/c.pem"},
	} {
		wrong := *address
		wrong.Host = net.JoinHostPort(c.host, address.Port())
		q := wrong.Query()
		for key, value := range c.set {
			q.Set(key, value)
			if value == "" {
				q.Del(key)
			}
		}
		wrong.RawQuery = q.Encode()
		for _, command := range []string{"worker", "serve", "status"} {
			r := call(t.Context(), "", "--json", "--database-url", wrong.String(), command)
			assert.Contains(t, r.err, `"code":"`+c.code+`"`, "%s: %s", name, command)
			assert.Contains(t, r.err, c.says, "%s: %s", name, command)
			if c.code == "DATABASE_REFUSES" && name != "no TLS" && name != "no certificate" && name != "another's" {
				assert.Contains(t, r.err, "Check sslmode, sslrootcert", "%s: %s", name, command)
			}
		}
	}
}

// overTLS is the address of a Temporal server behind what speaks TLS with its clients and wants a
// certificate of the authority's, as the front of a company's servers does: the development server
// has no TLS.
func overTLS(t *testing.T, a *authority, server string) string {
	t.Helper()
	certFile, keyFile := a.issue()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	clients.AddCert(a.parsed())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(t.Context(), front, server)
		}
	}()
	return listener.Addr().String()
}

// forward joins a connection to one to the server until one of them ends, or the test does.
func forward(ctx context.Context, front net.Conn, server string) {
	defer func() { _ = front.Close() }()
	var dialer net.Dialer
	back, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{front, back}, {back, front}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	_ = front.Close()
	_ = back.Close()
	<-ended
}

// parsed is the authority's own certificate.
func (a *authority) parsed() *x509.Certificate {
	a.t.Helper()
	text, err := os.ReadFile(a.ca)
	require.NoError(a.t, err)
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(a.t, err)
	return cert
}

// TestTLSToTemporal has a worker post over TLS with certificates on both sides, and commands end
// at once where one side does not trust the other.
func TestTLSToTemporal(t *testing.T) {
	temporal := temporaltest.Shared(t)
	namespace := temporal.Namespace(t)
	inNamespace(t, temporal, namespace)
	a, other := newAuthority(t, "ours"), newAuthority(t, "another")
	cert, key := a.issue()
	secured := overTLS(t, a, temporal.Address)
	settings := map[string]string{
		"TEMPORAL_ADDRESS": secured, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": a.ca,
		"TEMPORAL_TLS_CLIENT_CERT_PATH": cert, "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
	}
	for name, value := range settings {
		t.Setenv(name, value)
	}
	b := setup(t)
	worksSample(t, b, temporal, namespace)

	for name, set := range map[string]map[string]string{
		"another authority":       {"TEMPORAL_TLS_SERVER_CA_CERT_PATH": other.ca},
		"another host name":       {"TEMPORAL_TLS_SERVER_NAME": "temporal.example.com"},
		"no certificate":          {"TEMPORAL_TLS_CLIENT_CERT_PATH": "", "TEMPORAL_TLS_CLIENT_KEY_PATH": ""},
		"a server that is no TLS": {"TEMPORAL_ADDRESS": temporal.Address},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range set {
				t.Setenv(variable, value)
				if value == "" {
					require.NoError(t, os.Unsetenv(variable))
				}
			}
			for _, command := range [][]string{{"worker"}, {"workflow", "start"}} {
				r := b.run(append([]string{"--json"}, command...)...)
				assert.Equal(t, failure.ExitFailure, r.exit, "%v: %s", command, r.err)
				assert.Contains(t, r.err, `"code":"TEMPORAL_REFUSES"`, "%v", command)
				assert.Contains(t, r.err, "TEMPORAL_TLS_SERVER_CA_CERT_PATH", "%v", command)
			}
		})
	}
}
