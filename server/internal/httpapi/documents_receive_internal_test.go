package httpapi

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnElectronicInvoiceIsReadWhenThereIsAPlace: one takes much memory while it is read, and every
// token with the scope enqueue may send one.
func TestAnElectronicInvoiceIsReadWhenThereIsAPlace(t *testing.T) {
	t.Parallel()
	s := &server{receiving: make(chan struct{}, 1)}
	s.receiving <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.readReceived(ctx, "acme", &receiveDocumentInput{Format: "ubl", RawBody: []byte("<x/>")})
	require.ErrorIs(t, err, errTooMany)
	<-s.receiving
	_, _, err = s.readReceived(t.Context(), "acme", &receiveDocumentInput{Format: "ubl", RawBody: []byte("<x/>")})
	require.NotErrorIs(t, err, errTooMany)
	require.Empty(t, s.receiving, "its place is free again")
}
