// Package handlers has the job types that come with Daybook: webhook, email, report, cleanup and db_function.
//
// Register adds to a registry all that the environment configures:
//
//	registry := jobs.NewRegistry()
//	builtin, err := handlers.Register(registry, handlers.Config{Pool: pool})
//	if err != nil {
//		return err
//	}
//	defer builtin.Close()
//
// An application that wants one of them under a policy of its own makes it by its constructor and registers its Handle:
//
//	hook, err := handlers.NewWebhook(pool, handlers.WebhookConfig{})
//	if err != nil {
//		return err
//	}
//	policy := handlers.WebhookPolicy()
//	policy.Owner = "integrations"
//	jobs.Register(registry, policy, hook.Handle)
//
// Secrets are named by payloads and found by Secrets, when they are used. They reach neither errors nor results.
//
// A further type is one file: the payload, its policy, its configuration, its handler, and an init that appends to builtins.
// docs/job-types.md describes each type.
package handlers
