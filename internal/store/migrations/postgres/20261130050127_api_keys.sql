-- +goose Up
-- create "api_keys" table
CREATE TABLE "api_keys" ("id" character varying NOT NULL, "hash" bytea NOT NULL, "issuer" character varying NOT NULL, "subject" character varying NOT NULL, "operator" boolean NOT NULL, "note" character varying NOT NULL, "created_by" character varying NOT NULL, "created_at" timestamptz NOT NULL, "expires_at" timestamptz NULL, "last_used_at" timestamptz NULL, "revoked_at" timestamptz NULL, "revoked_by" character varying NULL, PRIMARY KEY ("id"));
-- create index "apikey_issuer_subject" to table: "api_keys"
CREATE INDEX "apikey_issuer_subject" ON "api_keys" ("issuer", "subject");

-- +goose Down
-- reverse: create index "apikey_issuer_subject" to table: "api_keys"
DROP INDEX "apikey_issuer_subject";
-- reverse: create "api_keys" table
DROP TABLE "api_keys";
