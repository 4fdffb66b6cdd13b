-- +goose Up
-- add columns to table: "attempts"; by hand, since a rebuilt table would be dropped with foreign keys in force
ALTER TABLE `attempts` ADD COLUMN `sent_to` text NULL;
ALTER TABLE `attempts` ADD COLUMN `ask_at` datetime NULL;
ALTER TABLE `attempts` ADD COLUMN `asked` integer NOT NULL DEFAULT 0;
ALTER TABLE `attempts` ADD COLUMN `resent_at` datetime NULL;
-- create index "attempt_unknown" to table: "attempts"
CREATE INDEX `attempt_unknown` ON `attempts` (`ask_at`) WHERE state = 'UNKNOWN';

-- +goose Down
-- reverse: create index "attempt_unknown" to table: "attempts"
DROP INDEX `attempt_unknown`;
-- reverse: add columns to table: "attempts"
ALTER TABLE `attempts` DROP COLUMN `resent_at`;
ALTER TABLE `attempts` DROP COLUMN `asked`;
ALTER TABLE `attempts` DROP COLUMN `ask_at`;
ALTER TABLE `attempts` DROP COLUMN `sent_to`;
