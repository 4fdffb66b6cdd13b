-- +goose Up
-- modify "contract_results" table
ALTER TABLE "contract_results" ADD COLUMN "signed_by" character varying NULL, ADD COLUMN "imported_by" character varying NULL, ADD COLUMN "imported_at" timestamptz NULL;
-- create "gate_events" table
CREATE TABLE "gate_events" ("id" character varying NOT NULL, "task" character varying NOT NULL, "task_version" character varying NOT NULL, "target" character varying NOT NULL, "basis" character varying NOT NULL, "number" bigint NOT NULL, "from_state" character varying NOT NULL, "to_state" character varying NOT NULL, "reasons" text NOT NULL, "result_id" character varying NULL, "at" timestamptz NOT NULL, PRIMARY KEY ("id"), CONSTRAINT "gate_events_states" CHECK (((from_state)::text = ANY ((ARRAY['PASSED'::character varying, 'FAILED'::character varying, 'STALE'::character varying, 'MISSING'::character varying])::text[])) AND ((to_state)::text = ANY ((ARRAY['PASSED'::character varying, 'FAILED'::character varying, 'STALE'::character varying, 'MISSING'::character varying])::text[]))));
-- create index "gateevent_basis_number" to table: "gate_events"
CREATE UNIQUE INDEX "gateevent_basis_number" ON "gate_events" ("basis", "number");
-- create index "gateevent_task_target_at" to table: "gate_events"
CREATE INDEX "gateevent_task_target_at" ON "gate_events" ("task", "target", "at");
-- create index "gateevent_task_version_target_at" to table: "gate_events"
CREATE INDEX "gateevent_task_version_target_at" ON "gate_events" ("task_version", "target", "at");

-- +goose Down
-- reverse: create index "gateevent_task_version_target_at" to table: "gate_events"
DROP INDEX "gateevent_task_version_target_at";
-- reverse: create index "gateevent_task_target_at" to table: "gate_events"
DROP INDEX "gateevent_task_target_at";
-- reverse: create index "gateevent_basis_number" to table: "gate_events"
DROP INDEX "gateevent_basis_number";
-- reverse: create "gate_events" table
DROP TABLE "gate_events";
-- reverse: modify "contract_results" table
ALTER TABLE "contract_results" DROP COLUMN "imported_at", DROP COLUMN "imported_by", DROP COLUMN "signed_by";
