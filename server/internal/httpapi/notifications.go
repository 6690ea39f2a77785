package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func (s *server) notifications() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getNotificationStats", Method: http.MethodGet, Path: "/api/notifications/stats",
		Tags:    []string{tagJobs},
		Summary: "Count notifications", Description: "Counts the background jobs of the types email, sms and notification.",
	}, s.getNotificationStats, http.StatusNotFound)
}

type notificationStatsInput struct {
	OrgID    string `query:"orgId" maxLength:"255" doc:"Only of this organization; default that of the token"`
	TimeZone string `query:"timeZone" maxLength:"64" default:"UTC" doc:"Where it is today, as the IANA database names it" example:"Europe/Berlin"`
}

type notificationStatsOutput struct {
	Body struct {
		Pending    int64 `json:"pending" doc:"They wait, also to be tried again"`
		Processing int64 `json:"processing" doc:"They are being worked"`
		Completed  int64 `json:"completed" doc:"They were sent, and are not removed yet"`
		Failed     int64 `json:"failed" doc:"Dead letters"`
		TodaysSent int64 `json:"todaysSent" doc:"Those of the completed ones that were sent since midnight in the time zone"`
	}
}

func (s *server) getNotificationStats(ctx context.Context,
	in *notificationStatsInput,
) (*notificationStatsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	stats, err := s.Listing.NotificationStats(ctx, org, in.TimeZone)
	if err != nil {
		return nil, err
	}
	out := &notificationStatsOutput{}
	b := &out.Body
	b.Pending, b.Processing, b.Completed, b.Failed, b.TodaysSent = stats.Pending, stats.Processing, stats.Completed,
		stats.Failed, stats.TodaysSent
	return out, nil
}
