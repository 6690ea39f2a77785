package httpapi

import (
	"time"

	"github.com/daybook-dev/daybook/queue"
)

type changeOutput struct {
	Body struct {
		JobID  string `json:"jobId"`
		Result string `json:"result" enum:"enqueued,coalesced,requeued,rescheduled,unchanged,cancelled,cancelling" doc:"What the request did"`
	}
}

func requested(r queue.Response, err error) (*changeOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &changeOutput{}
	out.Body.JobID, out.Body.Result = r.JobID, string(r.Result)
	return out, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
