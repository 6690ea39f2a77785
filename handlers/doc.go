// Package handlers has the job types that come with Daybook: webhook, email, sms, notification,
// airtable_sync, plaid_enrichment, file_delete, report, cleanup and db_function. Email, sms and
// file_delete are types of tasks as well, which the same handlers work: RegisterTasks.
//
// Register adds to a registry all types that the environment configures:
//
//	registry := jobs.NewRegistry()
//	builtin, err := handlers.Register(registry, handlers.Config{Pool: pool})
//	if err != nil {
//		return err
//	}
//	defer builtin.Close()
//
// An application that wants one of them under a policy of its own calls its constructor and
// registers its Handle:
//
//	hook, err := handlers.NewWebhook(pool, handlers.WebhookConfig{})
//	if err != nil {
//		return err
//	}
//	policy := handlers.WebhookPolicy()
//	policy.Owner = "integrations"
//	jobs.Register(registry, policy, hook.Handle)
//
// A payload names a secret, and Secrets finds it when it is used. No secret is in an error or a
// result.
//
// A further type is one file: the payload, its policy, its configuration, its handler, and an init
// that appends to builtins. docs/job-types.md describes each type.
package handlers
