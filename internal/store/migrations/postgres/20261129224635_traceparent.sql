-- +goose Up
-- modify "jobs" table
ALTER TABLE "jobs" ADD COLUMN "traceparent" character varying NULL;

-- +goose Down
-- reverse: modify "jobs" table
ALTER TABLE "jobs" DROP COLUMN "traceparent";
