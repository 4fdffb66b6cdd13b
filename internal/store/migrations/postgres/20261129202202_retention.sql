-- +goose Up
-- create index "jobevent_attempt_id" to table: "job_events"
CREATE INDEX "jobevent_attempt_id" ON "job_events" ("attempt_id");
-- create index "job_finished" to table: "jobs"
CREATE INDEX "job_finished" ON "jobs" ("state", "updated_at") WHERE (((state)::text = 'SUCCEEDED'::text) OR ((state)::text = 'FAILED'::text) OR ((state)::text = 'CANCELLED'::text));

-- +goose Down
-- reverse: create index "job_finished" to table: "jobs"
DROP INDEX "job_finished";
-- reverse: create index "jobevent_attempt_id" to table: "job_events"
DROP INDEX "jobevent_attempt_id";
