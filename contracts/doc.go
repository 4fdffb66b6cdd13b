// Package contracts proves that a target keeps a task's contract: it runs the task's cases at the target and judges what
// comes back. The tasks that come with Docket are embedded here.
//
// It imports providers, internal/canonical, internal/schema, internal/tasks, contracts/golden, contracts/meaning and
// contracts/report, and no database: results go to a Recorder.
package contracts
