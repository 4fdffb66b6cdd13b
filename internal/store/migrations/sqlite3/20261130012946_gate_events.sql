-- +goose Up
-- add column "signed_by" to table: "contract_results"
ALTER TABLE `contract_results` ADD COLUMN `signed_by` text NULL;
-- add column "imported_by" to table: "contract_results"
ALTER TABLE `contract_results` ADD COLUMN `imported_by` text NULL;
-- add column "imported_at" to table: "contract_results"
ALTER TABLE `contract_results` ADD COLUMN `imported_at` datetime NULL;
-- create "gate_events" table
CREATE TABLE `gate_events` (`id` text NOT NULL, `task` text NOT NULL, `task_version` text NOT NULL, `target` text NOT NULL, `basis` text NOT NULL, `number` integer NOT NULL, `from_state` text NOT NULL, `to_state` text NOT NULL, `reasons` json NOT NULL, `result_id` text NULL, `at` datetime NOT NULL, PRIMARY KEY (`id`), CONSTRAINT `gate_events_states` CHECK (from_state IN ('PASSED','FAILED','STALE','MISSING') AND to_state IN ('PASSED','FAILED','STALE','MISSING')));
-- create index "gateevent_basis_number" to table: "gate_events"
CREATE UNIQUE INDEX `gateevent_basis_number` ON `gate_events` (`basis`, `number`);
-- create index "gateevent_task_version_target_at" to table: "gate_events"
CREATE INDEX `gateevent_task_version_target_at` ON `gate_events` (`task_version`, `target`, `at`);
-- create index "gateevent_task_target_at" to table: "gate_events"
CREATE INDEX `gateevent_task_target_at` ON `gate_events` (`task`, `target`, `at`);

-- +goose Down
-- reverse: create index "gateevent_task_target_at" to table: "gate_events"
DROP INDEX `gateevent_task_target_at`;
-- reverse: create index "gateevent_task_version_target_at" to table: "gate_events"
DROP INDEX `gateevent_task_version_target_at`;
-- reverse: create index "gateevent_basis_number" to table: "gate_events"
DROP INDEX `gateevent_basis_number`;
-- reverse: create "gate_events" table
DROP TABLE `gate_events`;
-- reverse: add column "imported_at" to table: "contract_results"
ALTER TABLE `contract_results` DROP COLUMN `imported_at`;
-- reverse: add column "imported_by" to table: "contract_results"
ALTER TABLE `contract_results` DROP COLUMN `imported_by`;
-- reverse: add column "signed_by" to table: "contract_results"
ALTER TABLE `contract_results` DROP COLUMN `signed_by`;
