-- +goose Up
-- add column "traceparent" to table: "jobs"
ALTER TABLE `jobs` ADD COLUMN `traceparent` text NULL;

-- +goose Down
-- reverse: add column "traceparent" to table: "jobs"
ALTER TABLE `jobs` DROP COLUMN `traceparent`;
