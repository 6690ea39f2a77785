package workflows

import (
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/models"
)

// SignalOrder tells workflows which of the signals pause and resume came last. Signals of two names
// have two channels, and a workflow that finds something in both cannot know the order; the history
// does. Workers and replayers of these workflows are given it.
func SignalOrder() interceptor.WorkerInterceptor { return &signalOrder{} }

type signalOrder struct {
	interceptor.WorkerInterceptorBase
}

func (*signalOrder) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	i := &orderedWorkflow{}
	i.Next = next
	return i
}

// orderedWorkflow belongs to one execution.
type orderedWorkflow struct {
	interceptor.WorkflowInboundInterceptorBase
	last lastSignal
}

// lastSignal is which of pause and resume came last; the workflow's goroutines alone touch it.
type lastSignal struct{ name string }

type lastSignalKey struct{}

func (i *orderedWorkflow) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, lastSignalKey{}, &i.last), in)
}

func (i *orderedWorkflow) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	if in.SignalName == models.SignalPause || in.SignalName == models.SignalResume {
		i.last.name = in.SignalName
	}
	return i.Next.HandleSignal(ctx, in)
}

// pauseAsked reports what the last of the signals pause and resume asked for, when received is
// among those that have just come. Without the interceptor pause wins over a resume that came with
// it: that is the safe way.
func pauseAsked(ctx workflow.Context, received string) bool {
	if last, ok := ctx.Value(lastSignalKey{}).(*lastSignal); ok && last.name != "" {
		return last.name == models.SignalPause
	}
	return received == models.SignalPause || workflow.GetSignalChannel(ctx, models.SignalPause).Len() > 0
}
