-- +goose Up
-- modify "attempts" table
ALTER TABLE "attempts" ADD COLUMN "sent_to" character varying NULL, ADD COLUMN "ask_at" timestamptz NULL, ADD COLUMN "asked" bigint NOT NULL DEFAULT 0, ADD COLUMN "resent_at" timestamptz NULL;
-- create index "attempt_unknown" to table: "attempts"
CREATE INDEX "attempt_unknown" ON "attempts" ("ask_at") WHERE ((state)::text = 'UNKNOWN'::text);

-- +goose Down
-- reverse: create index "attempt_unknown" to table: "attempts"
DROP INDEX "attempt_unknown";
-- reverse: modify "attempts" table
ALTER TABLE "attempts" DROP COLUMN "resent_at", DROP COLUMN "asked", DROP COLUMN "ask_at", DROP COLUMN "sent_to";
