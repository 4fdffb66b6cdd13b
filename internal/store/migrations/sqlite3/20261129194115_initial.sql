-- +goose Up
-- create "attempts" table
CREATE TABLE `attempts` (`id` text NOT NULL, `number` integer NOT NULL, `target` text NOT NULL, `reason` text NOT NULL, `state` text NOT NULL, `job_version` integer NOT NULL, `error_code` text NULL, `error_message` text NULL, `error_retryable` bool NULL, `error_retry_after_ms` integer NULL, `input_tokens` integer NULL, `output_tokens` integer NULL, `cost` text NULL, `currency` text NULL, `created_at` datetime NOT NULL, `due_at` datetime NOT NULL, `sent_at` datetime NULL, `acknowledged_at` datetime NULL, `finished_at` datetime NULL, `provider_request_id` text NULL, `provider_handle` text NULL, `queue_entry` integer NULL, `lease_token` text NULL, `lease_expires_at` datetime NULL, `job_id` text NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `attempts_jobs_attempts` FOREIGN KEY (`job_id`) REFERENCES `jobs` (`id`) ON DELETE NO ACTION, CONSTRAINT `attempts_finished` CHECK ((state IN ('STARTING','RUNNING','UNKNOWN')) = (finished_at IS NULL)), CONSTRAINT `attempts_reason` CHECK (reason IN ('PRIMARY','RETRY','FALLBACK','HEDGE','MANUAL')), CONSTRAINT `attempts_state` CHECK (state IN ('STARTING','RUNNING','UNKNOWN','SUCCEEDED','FAILED','CANCELLED','SUPERSEDED')));
-- create index "attempt_job_id_number" to table: "attempts"
CREATE UNIQUE INDEX `attempt_job_id_number` ON `attempts` (`job_id`, `number`);
-- create index "attempt_one_starting" to table: "attempts"
CREATE UNIQUE INDEX `attempt_one_starting` ON `attempts` (`job_id`) WHERE state = 'STARTING';
-- create index "attempt_leased" to table: "attempts"
CREATE INDEX `attempt_leased` ON `attempts` (`lease_expires_at`) WHERE lease_expires_at IS NOT NULL;
-- create index "attempt_waiting" to table: "attempts"
CREATE INDEX `attempt_waiting` ON `attempts` (`due_at`) WHERE state = 'STARTING';
-- create index "attempt_state_created_at" to table: "attempts"
CREATE INDEX `attempt_state_created_at` ON `attempts` (`state`, `created_at`);
-- create "contract_results" table
CREATE TABLE `contract_results` (`id` text NOT NULL, `task` text NOT NULL, `task_version` text NOT NULL, `target` text NOT NULL, `config_digest` text NOT NULL, `cases_digest` text NOT NULL, `checks_version` text NOT NULL, `digest` text NOT NULL, `mode` text NOT NULL, `passed` bool NOT NULL, `report` json NOT NULL, `ran_by` text NOT NULL, `created_at` datetime NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `contract_results_mode` CHECK (mode IN ('live','record','replay')));
-- create index "contractresult_task_version_target_created_at" to table: "contract_results"
CREATE INDEX `contractresult_task_version_target_created_at` ON `contract_results` (`task_version`, `target`, `created_at`);
-- create index "contractresult_task_target_created_at" to table: "contract_results"
CREATE INDEX `contractresult_task_target_created_at` ON `contract_results` (`task`, `target`, `created_at`);
-- create "jobs" table
CREATE TABLE `jobs` (`id` text NOT NULL, `idempotency_key` text NOT NULL, `fingerprint` blob NOT NULL, `task` text NOT NULL, `input` json NOT NULL, `target` text NOT NULL, `fallbacks` json NOT NULL, `hedge_after_ms` integer NULL, `callback_url` text NULL, `state` text NOT NULL, `version` integer NOT NULL DEFAULT (1), `result` json NULL, `last_event` integer NOT NULL DEFAULT (0), `created_at` datetime NOT NULL, `updated_at` datetime NOT NULL, `completed_by_id` text NULL, `owner_id` text NOT NULL, `task_version` text NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `jobs_attempts_completes` FOREIGN KEY (`completed_by_id`) REFERENCES `attempts` (`id`) ON DELETE RESTRICT, CONSTRAINT `jobs_owners_jobs` FOREIGN KEY (`owner_id`) REFERENCES `owners` (`id`) ON DELETE NO ACTION, CONSTRAINT `jobs_task_versions_jobs` FOREIGN KEY (`task_version`) REFERENCES `task_versions` (`id`) ON DELETE NO ACTION, CONSTRAINT `jobs_state` CHECK (state IN ('QUEUED','RUNNING','UNKNOWN','WAITING','SUCCEEDED','FAILED','CANCELLED')), CONSTRAINT `jobs_winner` CHECK ((state = 'SUCCEEDED') = (completed_by_id IS NOT NULL) AND (completed_by_id IS NULL) = (result IS NULL)));
-- create index "jobs_completed_by_id_key" to table: "jobs"
CREATE UNIQUE INDEX `jobs_completed_by_id_key` ON `jobs` (`completed_by_id`);
-- create index "job_owner_id_idempotency_key" to table: "jobs"
CREATE UNIQUE INDEX `job_owner_id_idempotency_key` ON `jobs` (`owner_id`, `idempotency_key`);
-- create index "job_owner_id_created_at_id" to table: "jobs"
CREATE INDEX `job_owner_id_created_at_id` ON `jobs` (`owner_id`, `created_at`, `id`);
-- create index "job_state_created_at" to table: "jobs"
CREATE INDEX `job_state_created_at` ON `jobs` (`state`, `created_at`);
-- create index "job_task_version" to table: "jobs"
CREATE INDEX `job_task_version` ON `jobs` (`task_version`);
-- create "job_events" table
CREATE TABLE `job_events` (`id` integer NOT NULL PRIMARY KEY AUTOINCREMENT, `number` integer NOT NULL, `type` text NOT NULL, `at` datetime NOT NULL, `from_state` text NULL, `to_state` text NULL, `detail` json NULL, `attempt_id` text NULL, `job_id` text NOT NULL, CONSTRAINT `job_events_attempts_events` FOREIGN KEY (`attempt_id`) REFERENCES `attempts` (`id`) ON DELETE SET NULL, CONSTRAINT `job_events_jobs_events` FOREIGN KEY (`job_id`) REFERENCES `jobs` (`id`) ON DELETE NO ACTION);
-- create index "jobevent_job_id_number" to table: "job_events"
CREATE UNIQUE INDEX `jobevent_job_id_number` ON `job_events` (`job_id`, `number`);
-- create "owners" table
CREATE TABLE `owners` (`id` text NOT NULL, `issuer` text NOT NULL, `subject` text NOT NULL, `created_at` datetime NOT NULL, PRIMARY KEY (`id`));
-- create index "owner_issuer_subject" to table: "owners"
CREATE UNIQUE INDEX `owner_issuer_subject` ON `owners` (`issuer`, `subject`);
-- create "task_versions" table
CREATE TABLE `task_versions` (`id` text NOT NULL, `name` text NOT NULL, `version` text NOT NULL, `content` blob NOT NULL, `created_at` datetime NOT NULL, PRIMARY KEY (`id`));

-- +goose Down
-- reverse: create "task_versions" table
DROP TABLE `task_versions`;
-- reverse: create index "owner_issuer_subject" to table: "owners"
DROP INDEX `owner_issuer_subject`;
-- reverse: create "owners" table
DROP TABLE `owners`;
-- reverse: create index "jobevent_job_id_number" to table: "job_events"
DROP INDEX `jobevent_job_id_number`;
-- reverse: create "job_events" table
DROP TABLE `job_events`;
-- reverse: create index "job_task_version" to table: "jobs"
DROP INDEX `job_task_version`;
-- reverse: create index "job_state_created_at" to table: "jobs"
DROP INDEX `job_state_created_at`;
-- reverse: create index "job_owner_id_created_at_id" to table: "jobs"
DROP INDEX `job_owner_id_created_at_id`;
-- reverse: create index "job_owner_id_idempotency_key" to table: "jobs"
DROP INDEX `job_owner_id_idempotency_key`;
-- reverse: create index "jobs_completed_by_id_key" to table: "jobs"
DROP INDEX `jobs_completed_by_id_key`;
-- reverse: create "jobs" table
DROP TABLE `jobs`;
-- reverse: create index "contractresult_task_target_created_at" to table: "contract_results"
DROP INDEX `contractresult_task_target_created_at`;
-- reverse: create index "contractresult_task_version_target_created_at" to table: "contract_results"
DROP INDEX `contractresult_task_version_target_created_at`;
-- reverse: create "contract_results" table
DROP TABLE `contract_results`;
-- reverse: create index "attempt_state_created_at" to table: "attempts"
DROP INDEX `attempt_state_created_at`;
-- reverse: create index "attempt_waiting" to table: "attempts"
DROP INDEX `attempt_waiting`;
-- reverse: create index "attempt_leased" to table: "attempts"
DROP INDEX `attempt_leased`;
-- reverse: create index "attempt_one_starting" to table: "attempts"
DROP INDEX `attempt_one_starting`;
-- reverse: create index "attempt_job_id_number" to table: "attempts"
DROP INDEX `attempt_job_id_number`;
-- reverse: create "attempts" table
DROP TABLE `attempts`;
