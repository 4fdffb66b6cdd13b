-- +goose Up
-- create index "job_open" to table: "jobs"
CREATE INDEX "job_open" ON "jobs" ("owner_id") WHERE (((state)::text = 'QUEUED'::text) OR ((state)::text = 'RUNNING'::text) OR ((state)::text = 'UNKNOWN'::text) OR ((state)::text = 'WAITING'::text));
-- create table "request_rates", which the schema does not know: what is in it may be lost at any time
CREATE UNLOGGED TABLE "request_rates" ("owner_id" character varying NOT NULL, "full_at" timestamptz NOT NULL, PRIMARY KEY ("owner_id"));

-- +goose Down
-- reverse: create table "request_rates"
DROP TABLE "request_rates";
-- reverse: create index "job_open" to table: "jobs"
DROP INDEX "job_open";
