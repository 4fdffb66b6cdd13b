-- +goose Up
-- modify "attempts" table
ALTER TABLE "attempts" ADD COLUMN "cached_input_tokens" bigint NULL;

-- +goose Down
-- reverse: modify "attempts" table
ALTER TABLE "attempts" DROP COLUMN "cached_input_tokens";
