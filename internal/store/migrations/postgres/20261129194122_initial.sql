-- +goose Up
-- create "attempts" table
CREATE TABLE "attempts" ("id" character varying NOT NULL, "number" bigint NOT NULL, "target" character varying NOT NULL, "reason" character varying NOT NULL, "state" character varying NOT NULL, "job_version" bigint NOT NULL, "error_code" character varying NULL, "error_message" character varying NULL, "error_retryable" boolean NULL, "error_retry_after_ms" bigint NULL, "input_tokens" bigint NULL, "output_tokens" bigint NULL, "cost" character varying NULL, "currency" character varying NULL, "created_at" timestamptz NOT NULL, "due_at" timestamptz NOT NULL, "sent_at" timestamptz NULL, "acknowledged_at" timestamptz NULL, "finished_at" timestamptz NULL, "provider_request_id" character varying NULL, "provider_handle" character varying NULL, "queue_entry" bigint NULL, "lease_token" character varying NULL, "lease_expires_at" timestamptz NULL, "job_id" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "attempts_finished" CHECK (((state)::text = ANY ((ARRAY['STARTING'::character varying, 'RUNNING'::character varying, 'UNKNOWN'::character varying])::text[])) = (finished_at IS NULL)), CONSTRAINT "attempts_reason" CHECK ((reason)::text = ANY ((ARRAY['PRIMARY'::character varying, 'RETRY'::character varying, 'FALLBACK'::character varying, 'HEDGE'::character varying, 'MANUAL'::character varying])::text[])), CONSTRAINT "attempts_state" CHECK ((state)::text = ANY ((ARRAY['STARTING'::character varying, 'RUNNING'::character varying, 'UNKNOWN'::character varying, 'SUCCEEDED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying, 'SUPERSEDED'::character varying])::text[])));
-- create index "attempt_job_id_number" to table: "attempts"
CREATE UNIQUE INDEX "attempt_job_id_number" ON "attempts" ("job_id", "number");
-- create index "attempt_leased" to table: "attempts"
CREATE INDEX "attempt_leased" ON "attempts" ("lease_expires_at") WHERE (lease_expires_at IS NOT NULL);
-- create index "attempt_one_starting" to table: "attempts"
CREATE UNIQUE INDEX "attempt_one_starting" ON "attempts" ("job_id") WHERE ((state)::text = 'STARTING'::text);
-- create index "attempt_state_created_at" to table: "attempts"
CREATE INDEX "attempt_state_created_at" ON "attempts" ("state", "created_at");
-- create index "attempt_waiting" to table: "attempts"
CREATE INDEX "attempt_waiting" ON "attempts" ("due_at") WHERE ((state)::text = 'STARTING'::text);
-- create "contract_results" table
CREATE TABLE "contract_results" ("id" character varying NOT NULL, "task" character varying NOT NULL, "task_version" character varying NOT NULL, "target" character varying NOT NULL, "config_digest" character varying NOT NULL, "cases_digest" character varying NOT NULL, "checks_version" character varying NOT NULL, "digest" character varying NOT NULL, "mode" character varying NOT NULL, "passed" boolean NOT NULL, "report" text NOT NULL, "ran_by" character varying NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "contract_results_mode" CHECK ((mode)::text = ANY ((ARRAY['live'::character varying, 'record'::character varying, 'replay'::character varying])::text[])));
-- create index "contractresult_task_target_created_at" to table: "contract_results"
CREATE INDEX "contractresult_task_target_created_at" ON "contract_results" ("task", "target", "created_at");
-- create index "contractresult_task_version_target_created_at" to table: "contract_results"
CREATE INDEX "contractresult_task_version_target_created_at" ON "contract_results" ("task_version", "target", "created_at");
-- create "jobs" table
CREATE TABLE "jobs" ("id" character varying NOT NULL, "idempotency_key" character varying NOT NULL, "fingerprint" bytea NOT NULL, "task" character varying NOT NULL, "input" text NOT NULL, "target" character varying NOT NULL, "fallbacks" jsonb NOT NULL, "hedge_after_ms" bigint NULL, "callback_url" character varying NULL, "state" character varying NOT NULL, "version" bigint NOT NULL DEFAULT 1, "result" text NULL, "last_event" bigint NOT NULL DEFAULT 0, "created_at" timestamptz NOT NULL, "updated_at" timestamptz NOT NULL, "completed_by_id" character varying NULL, "owner_id" character varying NOT NULL, "task_version" character varying NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "jobs_state" CHECK ((state)::text = ANY ((ARRAY['QUEUED'::character varying, 'RUNNING'::character varying, 'UNKNOWN'::character varying, 'WAITING'::character varying, 'SUCCEEDED'::character varying, 'FAILED'::character varying, 'CANCELLED'::character varying])::text[])), CONSTRAINT "jobs_winner" CHECK ((((state)::text = 'SUCCEEDED'::text) = (completed_by_id IS NOT NULL)) AND ((completed_by_id IS NULL) = (result IS NULL))));
-- create index "job_owner_id_created_at_id" to table: "jobs"
CREATE INDEX "job_owner_id_created_at_id" ON "jobs" ("owner_id", "created_at", "id");
-- create index "job_owner_id_idempotency_key" to table: "jobs"
CREATE UNIQUE INDEX "job_owner_id_idempotency_key" ON "jobs" ("owner_id", "idempotency_key");
-- create index "job_state_created_at" to table: "jobs"
CREATE INDEX "job_state_created_at" ON "jobs" ("state", "created_at");
-- create index "job_task_version" to table: "jobs"
CREATE INDEX "job_task_version" ON "jobs" ("task_version");
-- create index "jobs_completed_by_id_key" to table: "jobs"
CREATE UNIQUE INDEX "jobs_completed_by_id_key" ON "jobs" ("completed_by_id");
-- create "job_events" table
CREATE TABLE "job_events" ("id" bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY, "number" bigint NOT NULL, "type" character varying NOT NULL, "at" timestamptz NOT NULL, "from_state" character varying NULL, "to_state" character varying NULL, "detail" text NULL, "attempt_id" character varying NULL, "job_id" character varying NOT NULL, PRIMARY KEY ("id"));
-- create index "jobevent_job_id_number" to table: "job_events"
CREATE UNIQUE INDEX "jobevent_job_id_number" ON "job_events" ("job_id", "number");
-- create "owners" table
CREATE TABLE "owners" ("id" character varying NOT NULL, "issuer" character varying NOT NULL, "subject" character varying NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- create index "owner_issuer_subject" to table: "owners"
CREATE UNIQUE INDEX "owner_issuer_subject" ON "owners" ("issuer", "subject");
-- create "task_versions" table
CREATE TABLE "task_versions" ("id" character varying NOT NULL, "name" character varying NOT NULL, "version" character varying NOT NULL, "content" bytea NOT NULL, "created_at" timestamptz NOT NULL, PRIMARY KEY ("id"));
-- modify "attempts" table
ALTER TABLE "attempts" ADD CONSTRAINT "attempts_jobs_attempts" FOREIGN KEY ("job_id") REFERENCES "jobs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "jobs" table
ALTER TABLE "jobs" ADD CONSTRAINT "jobs_attempts_completes" FOREIGN KEY ("completed_by_id") REFERENCES "attempts" ("id") ON UPDATE NO ACTION ON DELETE RESTRICT, ADD CONSTRAINT "jobs_owners_jobs" FOREIGN KEY ("owner_id") REFERENCES "owners" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION, ADD CONSTRAINT "jobs_task_versions_jobs" FOREIGN KEY ("task_version") REFERENCES "task_versions" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;
-- modify "job_events" table
ALTER TABLE "job_events" ADD CONSTRAINT "job_events_attempts_events" FOREIGN KEY ("attempt_id") REFERENCES "attempts" ("id") ON UPDATE NO ACTION ON DELETE SET NULL, ADD CONSTRAINT "job_events_jobs_events" FOREIGN KEY ("job_id") REFERENCES "jobs" ("id") ON UPDATE NO ACTION ON DELETE NO ACTION;

-- +goose Down
-- reverse: modify "job_events" table
ALTER TABLE "job_events" DROP CONSTRAINT "job_events_jobs_events", DROP CONSTRAINT "job_events_attempts_events";
-- reverse: modify "jobs" table
ALTER TABLE "jobs" DROP CONSTRAINT "jobs_task_versions_jobs", DROP CONSTRAINT "jobs_owners_jobs", DROP CONSTRAINT "jobs_attempts_completes";
-- reverse: modify "attempts" table
ALTER TABLE "attempts" DROP CONSTRAINT "attempts_jobs_attempts";
-- reverse: create "task_versions" table
DROP TABLE "task_versions";
-- reverse: create index "owner_issuer_subject" to table: "owners"
DROP INDEX "owner_issuer_subject";
-- reverse: create "owners" table
DROP TABLE "owners";
-- reverse: create index "jobevent_job_id_number" to table: "job_events"
DROP INDEX "jobevent_job_id_number";
-- reverse: create "job_events" table
DROP TABLE "job_events";
-- reverse: create index "jobs_completed_by_id_key" to table: "jobs"
DROP INDEX "jobs_completed_by_id_key";
-- reverse: create index "job_task_version" to table: "jobs"
DROP INDEX "job_task_version";
-- reverse: create index "job_state_created_at" to table: "jobs"
DROP INDEX "job_state_created_at";
-- reverse: create index "job_owner_id_idempotency_key" to table: "jobs"
DROP INDEX "job_owner_id_idempotency_key";
-- reverse: create index "job_owner_id_created_at_id" to table: "jobs"
DROP INDEX "job_owner_id_created_at_id";
-- reverse: create "jobs" table
DROP TABLE "jobs";
-- reverse: create index "contractresult_task_version_target_created_at" to table: "contract_results"
DROP INDEX "contractresult_task_version_target_created_at";
-- reverse: create index "contractresult_task_target_created_at" to table: "contract_results"
DROP INDEX "contractresult_task_target_created_at";
-- reverse: create "contract_results" table
DROP TABLE "contract_results";
-- reverse: create index "attempt_waiting" to table: "attempts"
DROP INDEX "attempt_waiting";
-- reverse: create index "attempt_state_created_at" to table: "attempts"
DROP INDEX "attempt_state_created_at";
-- reverse: create index "attempt_one_starting" to table: "attempts"
DROP INDEX "attempt_one_starting";
-- reverse: create index "attempt_leased" to table: "attempts"
DROP INDEX "attempt_leased";
-- reverse: create index "attempt_job_id_number" to table: "attempts"
DROP INDEX "attempt_job_id_number";
-- reverse: create "attempts" table
DROP TABLE "attempts";
