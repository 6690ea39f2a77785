// Package console is the web console: pages that show what the queues and the ledger do, and the
// actions that an operator takes.
//
// Pages are rendered on the server (templates/), read without JavaScript, and load nothing from
// elsewhere. console.js only adds what is pleasant: times that stay true, and parts that are read
// anew. A subject has one file of handlers and one template for each of its pages:
//
//	jobs.go         templates/jobs.html, templates/job.html …
//	page.go         what a page is, and how one is rendered
//	action.go       what an action is: a POST that ends in a redirect and is recorded
//	session.go      sign-in by an API token, the cookie
//
// A page names the scope that its token must have. What a token of one organization may not reach
// does not exist for it.
package console
