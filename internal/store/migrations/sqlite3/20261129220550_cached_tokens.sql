-- +goose Up
-- add column "cached_input_tokens" to table: "attempts"
ALTER TABLE `attempts` ADD COLUMN `cached_input_tokens` integer NULL;

-- +goose Down
-- reverse: add column "cached_input_tokens" to table: "attempts"
ALTER TABLE `attempts` DROP COLUMN `cached_input_tokens`;
