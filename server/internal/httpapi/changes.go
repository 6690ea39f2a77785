package httpapi

import (
	"time"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/queue"
)

type changeOutput struct {
	Body struct{ answers.Change }
}

func requested(r queue.Response, err error) (*changeOutput, error) {
	if err != nil {
		return nil, err
	}
	out := &changeOutput{}
	out.Body.Change = answers.Change{JobID: r.JobID, Result: string(r.Result), Reason: r.Reason}
	return out, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
