-- +goose Up
-- create index "job_open" to table: "jobs"
CREATE INDEX `job_open` ON `jobs` (`owner_id`) WHERE state = 'QUEUED' OR state = 'RUNNING' OR state = 'UNKNOWN' OR state = 'WAITING';

-- +goose Down
-- reverse: create index "job_open" to table: "jobs"
DROP INDEX `job_open`;
