package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/tasks"
)

// Register registers every built-in job type that the environment configures, and says what the
// others lack.
func ExampleRegister() {
	e := pgtest.NewExample()
	defer e.Close()

	registry := jobs.NewRegistry()
	builtin, err := handlers.Register(registry,
		handlers.Config{Pool: e.Pool, Environment: map[string]string{"DAYBOOK_DB_FUNCTIONS": "public.close_month"}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = builtin.Close() }()
	fmt.Println(builtin.Types)
	_, missing := builtin.Missing["email"]
	fmt.Println(missing)
	// Output:
	// [cleanup db_function webhook]
	// true
}

// Tasks of the types email, sms and file_delete are worked as the environment configures them,
// beside an application's own.
func ExampleRegisterTasks() {
	registry := tasks.NewRegistry()
	builtin, err := handlers.RegisterTasks(registry, handlers.Config{Environment: map[string]string{
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC0123", "DAYBOOK_SMS_FROM": "Shop",
	}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = builtin.Close() }()
	fmt.Println(registry.Names())
	fmt.Println(builtin.Missing["email"])
	// Output:
	// [db_function sms]
	// set DAYBOOK_SMTP_HOST and DAYBOOK_SMTP_FROM
}

// A type is registered by itself, under a policy of the application's own.
func ExampleNewWebhook() {
	e := pgtest.NewExample()
	defer e.Close()

	webhook, err := handlers.NewWebhook(e.Pool, handlers.WebhookConfig{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = webhook.Close() }()
	policy := handlers.WebhookPolicy()
	policy.MaxAttempts = 12
	registry := jobs.NewRegistry()
	jobs.Register(registry, policy, webhook.Handle)
	fmt.Println(registry.TypeName("webhook"))
	// Output: webhook
}

// A built-in type needs no more than its payload to be enqueued.
func ExampleWebhook() {
	fmt.Println(handlers.Webhook{URL: "https://example.com/hook"}.JobType())
	// Output: webhook
}

// A template is read and filled in a test as a worker does it.
func ExampleOpenMailTemplates() {
	templates, err := handlers.OpenMailTemplates("") // the directory of DAYBOOK_MAIL_TEMPLATES
	if err != nil {
		panic(err)
	}
	mail, err := templates.Render("status_change", map[string]any{"applicantName": "Ada", "status": "accepted"})
	if err != nil {
		panic(err)
	}
	fmt.Println(mail.Subject)
	fmt.Println(strings.SplitN(mail.Text, "\n", 4)[2])
	// Output:
	// Your submission has a new status
	// your submission has a new status: accepted.
}

// A function in another language works the jobs of a type. It is asked by requests that the secret
// signs. An attempt may take as long as its request, and a little more.
func ExampleFunctionPolicy() {
	policy := handlers.FunctionPolicy(time.Minute)
	fmt.Println(policy.Timeout)
	// Output:
	// 1m10s
}

func ExampleNewFunction() {
	function, err := handlers.NewFunction(handlers.FunctionConfig{
		URL: "https://functions.example.com/count_words", Secret: "functions", // DAYBOOK_WEBHOOK_SECRET_FUNCTIONS
		Callback: time.Hour, CallbackURL: "https://daybook.example.com",
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = function.Close() }()
	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "count_words", handlers.FunctionPolicy(0), function.Handle)
	fmt.Println(registry.Names())
	// Output:
	// [count_words]
}

// A Temporal workflow, in any language, works the jobs of a type. It runs once, and its result is
// the job's.
func ExampleNewTemporal() {
	temporal, err := client.NewLazyClient(client.Options{HostPort: "temporal:7233"})
	if err != nil {
		panic(err)
	}
	defer temporal.Close()
	pool, err := pgxpool.New(context.Background(), "postgres://localhost/app")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	ship, err := handlers.NewTemporal(handlers.TemporalConfig{
		Client: temporal, Pool: pool, Workflow: "ShipOrder",
		TaskQueue: "shipping",
	})
	if err != nil {
		panic(err)
	}
	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "ship", handlers.FunctionPolicy(0), ship.Handle)
	fmt.Println(registry.Names())
	// Output:
	// [ship]
}

// A Temporal activity works the jobs of a type. What runs beside the handlers is run once a
// process, beside the worker.
func ExampleTemporalHandler_Run() {
	ctx, stop := context.WithCancel(context.Background())
	temporal, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		panic(err)
	}
	defer temporal.Close()
	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	resize, err := handlers.NewTemporal(handlers.TemporalConfig{
		Client: temporal, Pool: pool, Activity: "ResizeImage", TaskQueue: "media", ActivityTimeout: 15 * time.Minute,
		Heartbeat: time.Minute,
	})
	if err != nil {
		panic(err)
	}
	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "resize", handlers.FunctionPolicy(0), resize.Handle)
	beside := make(chan error, 1)
	go func() { beside <- resize.Run(ctx) }()
	// A worker of the registry runs here (workers.NewJobs).
	stop()
	fmt.Println(<-beside)
	// Output:
	// <nil>
}

// A program that has a Temporal client finds the workflow of a job by its id.
func ExampleWorkflowID() {
	fmt.Println(handlers.WorkflowID("job_1"))
	// Output:
	// daybook-job/job_1
}
